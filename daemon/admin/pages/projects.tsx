import { PROJECT_COLUMNS } from '../../../console/columns/projects.js';
import { counted, exact } from '../../api/formats.js';
import type { WireProject } from '../../api/contract.js';
import { MAX_NAME_LENGTH } from '../../api/vocabulary.js';
import { get, listPage, type PageRequest, parametersOf, statusOf } from '../page-request.js';
import { Figure } from '../parts/formats.js';
import { tableColumns } from '../parts/cells.js';
import { Heading } from '../parts/document.js';
import { InputField, KeyFields } from '../parts/fields.js';
import { ActionLink, Link } from '../parts/frame.js';
import { ChoiceLinks, EmptyState, ErrorNotice, type ListProps, NoMatches, Paging, Table } from '../parts/common.js';
import { formRoutes } from './form.js';
import { NewPolicyFields, NONE_USED, OF_PROJECT, policiesIn, policyForm } from './policies.js';
import {
  EMPTY_PROVIDER_FORM,
  isKeyChecked,
  type KeyChange,
  missingUsageOf,
  ProviderFields,
  providerForm,
  sendKey,
  upstreamOf,
} from './provider.js';

interface ProjectsProps extends ListProps {
  projects: readonly WireProject[];
  total: number | null;
}

const FILTERS = [
  ['All', ''],
  ['Active', 'true'],
  ['Inactive', 'false'],
] as const;

function ProjectsPage({ projects, total, next, query, refused }: ProjectsProps) {
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
        <Table id="projects" label="Projects" noun="project" rows={projects} keyOf={({ id }) => id} columns={COLUMNS} />
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
        <span className="unseen"> failures</span>
      </Link>
    ) : (
      <Figure value={errors} />
    ),
});

const NewProject = () => (
  <ActionLink to="projects/new" className="button primary">
    New project
  </ActionLink>
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

// ---- routes

async function createProject(request: PageRequest): Promise<string> {
  const given = providerForm(request, EMPTY_PROVIDER_FORM);
  const { allow, limits, budget } = policiesIn(policyForm(request.form));
  const settings = {
    name: request.form.get('name') ?? '',
    ...upstreamOf(given),
    ...missingUsageOf(given),
    ...(allow && { allow }),
    ...(limits && { limits }),
    ...(budget && { budget }),
  };
  const create: KeyChange = (fields) => request.changeClient.createProject({ ...settings, ...fields });
  const { id, check } = await sendKey(request, create);
  return `projects/${id}?done=created${check}`;
}

export const projectsRoutes = [
  get('/projects', 'read projects', async (request) => {
    const filter = parametersOf(request.query, ['is_active', 'cursor']);
    const { items, ...page } = await listPage(() => request.client.projects(filter));
    const body = <ProjectsPage projects={items} {...page} query={request.query} />;
    return { title: 'Projects', section: 'projects', isLive: true, body, ...statusOf(page.refused) };
  }),
  ...formRoutes({
    section: 'projects',
    path: '/projects/new',
    permission: 'create projects',
    title: 'New project',
    verb: 'Create project',
    show: (request) => ({
      above: { to: 'projects', name: 'Projects' },
      fields: (
        <>
          <InputField
            name="name"
            label="Name"
            hint="Up to 100 characters. Must be unique."
            required
            maxLength={MAX_NAME_LENGTH}
            defaultValue={request.form.get('name') ?? ''}
          />
          <ProviderFields given={providerForm(request, EMPTY_PROVIDER_FORM)} />
          <KeyFields isChecked={isKeyChecked(request)} />
          <NewPolicyFields given={policyForm(request.form)} used={NONE_USED} hint={OF_PROJECT} />
        </>
      ),
      hasReason: false,
    }),
    run: createProject,
  }),
];
