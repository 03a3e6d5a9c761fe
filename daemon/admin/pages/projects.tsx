import { counted, exact } from '../../api/formats.js';
import { providerTitle } from '../../api/providers.js';
import type { WireProject } from '../../api/contract.js';
import { Heading } from './document.js';
import { Field, KeyFields } from './fields.js';
import { ChangeForm, Link } from './frame.js';
import { KeyHint } from './links.js';
import { ProviderFields, type ProviderFormValues } from './provider.js';
import { EmptyState, Paging, ErrorNotice, Table } from './parts.js';
import { Figure, Name, ProjectMark, Time } from './formats.js';
import { MAX_NAME_LENGTH } from '../../api/vocabulary.js';

export interface ProjectsProps {
  projects: readonly WireProject[];
  total: number | null;
  next: string | null;
  query: URLSearchParams;
  /** Error message if the filter is invalid. */
  refused: string | null;
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
        <ul className="choice" aria-label="Projects shown">
          {FILTERS.map(([title, value]) => (
            <li key={title}>
              <Link
                to={value === '' ? 'projects' : `projects?is_active=${value}`}
                aria-current={value === chosen ? 'true' : undefined}
              >
                {title}
              </Link>
            </li>
          ))}
        </ul>
      </div>
      {projects.length > 0 ? (
        <ProjectTable projects={projects} />
      ) : (
        refused === null && <NoProjects isFiltered={chosen !== ''} />
      )}
      <Paging to="projects" query={query} next={next} />
    </>
  );
}

function ProjectTable({ projects }: { projects: readonly WireProject[] }) {
  return (
    <Table
      id="projects"
      label="Projects"
      rows={projects}
      keyOf={({ id }) => id}
      columns={[
        {
          title: 'Name',
          show: ({ id, name }) => (
            <Link to={`projects/${id}`}>
              <Name>{name}</Name>
            </Link>
          ),
        },
        { title: 'State', show: ({ is_active: isActive }) => <ProjectMark isActive={isActive} /> },
        { title: 'Provider', show: providerTitle },
        {
          title: 'Active tokens',
          isNumber: true,
          show: ({ id, active_token_count: active, token_count: all }) => (
            <Link to={`tokens?project_id=${id}`}>
              {exact(active)} of {exact(all)}
              <span className="unseen"> tokens</span>
            </Link>
          ),
        },
        { title: 'Requests, 24 h', isNumber: true, show: ({ requests_24h: requests }) => <Figure value={requests} /> },
        {
          title: 'Errors, 24 h',
          isNumber: true,
          show: ({ id, errors_24h: errors }) =>
            errors > 0 ? (
              <Link to={`top?project_id=${id}&window=24h`} className="mark revoked">
                {exact(errors)}
                <span className="unseen"> errors</span>
              </Link>
            ) : (
              <Figure value={errors} />
            ),
        },
        { title: 'Last used', show: ({ last_used_at: at }) => <Time at={at} /> },
        { title: 'Upstream key', show: ({ api_key_hint: hint }) => <KeyHint hint={hint} /> },
        { title: 'Created', show: ({ created_at: at }) => <Time at={at} /> },
      ]}
    />
  );
}

const NewProject = () => (
  <Link to="projects/new" className="button primary">
    New project
  </Link>
);

function NoProjects({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <EmptyState title="No projects match this filter">
        <p>
          <Link to="projects">Show all projects</Link>
        </p>
      </EmptyState>
    );
  }
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
        <Field name="name" label="Name" hint="Up to 100 characters. Must be unique.">
          {(attributes) => (
            <input type="text" required maxLength={MAX_NAME_LENGTH} defaultValue={name} {...attributes} />
          )}
        </Field>
        <ProviderFields given={provider} />
        <KeyFields isChecked={isKeyChecked} />
        <div className="buttons">
          <Link to="projects" className="button">
            Cancel
          </Link>
          <button type="submit" className="primary">
            Create project
          </button>
        </div>
      </ChangeForm>
    </div>
  );
}
