import { PROJECT_COLUMNS } from '../../../console/columns/projects.js';
import { counted, exact } from '../../api/formats.js';
import type { WireProject } from '../../api/contract.js';
import { tableColumns } from './cells.js';
import { Heading } from './document.js';
import { FormButtons, InputField, KeyFields } from './fields.js';
import { ChangeForm, Link } from './frame.js';
import { ProviderFields, type ProviderFormValues } from './provider.js';
import { ChoiceLinks, EmptyState, type ListProps, NoMatches, Paging, ErrorNotice, Table } from './parts.js';
import { Figure } from './formats.js';
import { MAX_NAME_LENGTH } from '../../api/vocabulary.js';

export interface ProjectsProps extends ListProps {
  projects: readonly WireProject[];
  total: number | null;
}

const FILTERS = [
  ['All', ''],
  ['Active', 'true'],
  ['Inactive', 'false'],
] as const;

export function projectsPage({ projects, total, next, query, refused }: ProjectsProps) {
  const chosen = query.get('is_active') ?? '';
  return (
    <>
      <Heading title="Projects" actions={<NewProject />} />
      <ErrorNotice why={refused} />
      <div className="section-head">
        <p className="faint">{total === null ? '' : counted(total, 'project')}</p>
        <ChoiceLinks
          label="Projects shown"
          links={FILTERS.map(([title, value]) => ({
            title,
            to: value === '' ? 'projects' : `projects?is_active=${value}`,
            isCurrent: value === chosen,
          }))}
        />
      </div>
      {projects.length > 0 ? (
        <Table id="projects" label="Projects" rows={projects} keyOf={({ id }) => id} columns={COLUMNS} />
      ) : (
        refused === null && <NoProjects isFiltered={chosen !== ''} />
      )}
      <Paging to="projects" query={query} next={next} />
    </>
  );
}

const COLUMNS = tableColumns(PROJECT_COLUMNS, {
  tokens: ({ id, active_token_count: active, token_count: all }) => (
    <Link to={`tokens?project_id=${id}`}>
      {exact(active)} of {exact(all)}
      <span className="unseen"> tokens</span>
    </Link>
  ),
  errors: ({ id, errors_24h: errors }) =>
    errors > 0 ? (
      <Link to={`top?project_id=${id}&window=24h`} className="mark revoked">
        {exact(errors)}
        <span className="unseen"> errors</span>
      </Link>
    ) : (
      <Figure value={errors} />
    ),
});

const NewProject = () => (
  <Link to="projects/new" className="button primary">
    New project
  </Link>
);

function NoProjects({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <NoMatches list="projects" what="projects" />;
  return (
    <EmptyState title="No projects yet">
      <p>A project holds the API key of an upstream provider. Clients use its tokens instead of that key.</p>
      <p>
        <NewProject />
      </p>
    </EmptyState>
  );
}

export interface NewProjectProps {
  name: string;
  provider: ProviderFormValues;
  /** Whether the checkbox for the check of the key is selected. */
  isKeyChecked: boolean;
  refused: string | null;
}

export function newProjectPage({ name, provider, isKeyChecked, refused }: NewProjectProps) {
  return (
    <div className="narrow">
      <Heading title="New project" path={<Link to="projects">Projects</Link>} />
      <ErrorNotice why={refused} />
      <ChangeForm to="projects/new">
        <InputField
          name="name"
          label="Name"
          hint="Up to 100 characters. Must be unique."
          required
          maxLength={MAX_NAME_LENGTH}
          defaultValue={name}
        />
        <ProviderFields given={provider} />
        <KeyFields isChecked={isKeyChecked} />
        <FormButtons cancel="projects" verb="Create project" />
      </ChangeForm>
    </div>
  );
}
