import { counted } from '../../api/formats.js';
import type { ProjectPatch, WireProject } from '../../api/contract.js';
import { countMessage, doneMessage } from '../done-message.js';
import { confirmPage, type ConfirmProps } from '../pages/confirm.js';
import { projectPage } from '../pages/project.js';
import { newProjectPage, projectsPage } from '../pages/projects.js';
import { escapeBidi } from '../pages/formats.js';
import {
  type PageResponse,
  get,
  parametersOf,
  listPage,
  post,
  refusalOf,
  statusOf,
  type PageRequest,
} from '../page-request.js';
import { usageFor } from './overview.js';

const RECORDS_SHOWN = '8';

const DONE: Readonly<Record<string, string>> = {
  created: 'Project created. Now issue a token for it.',
  renamed: 'Project renamed.',
  key: 'Upstream key replaced. New requests use the new key.',
  activated: 'Project activated. Its tokens are accepted again.',
  deactivated: 'Project deactivated. Its tokens are refused from now on.',
};

const idOf = ({ params }: PageRequest) => params.id ?? '';

async function show(request: PageRequest, refused: string | null = null): Promise<PageResponse> {
  const client = request.client();
  const project = await client.project(idOf(request));
  const [used, records] = await Promise.all([
    usageFor(request, client, { project_id: project.id }),
    client.auditRecords({ project_id: project.id, limit: RECORDS_SHOWN }),
  ]);
  const done = refused === null ? (countMessage(request, 'revoked', 'token') ?? doneMessage(request, DONE)) : null;
  const body = projectPage({
    project,
    ...used,
    records: records.items,
    done,
    refused,
  });
  return { title: escapeBidi(project.name), section: 'projects', isLive: true, body, ...statusOf(refused) };
}

/** Makes a change from a form on the project's page. */
async function change(request: PageRequest, patch: ProjectPatch, done: string): Promise<PageResponse> {
  const id = idOf(request);
  const refused = await refusalOf(() => request.changeClient().updateProject(id, patch));
  return refused === null ? { to: `projects/${id}?done=${done}` } : show(request, refused);
}

// ---- changes with a confirmation page

type Confirmation = Pick<ConfirmProps, 'message' | 'verb' | 'isDangerous'> & { title: string };

const toActivate = ({ name }: WireProject): Confirmation => ({
  title: `Activate ${escapeBidi(name)}?`,
  message: 'Its tokens are accepted again from the next request on.',
  verb: 'Activate',
  isDangerous: false,
});

const toDeactivate = ({ name }: WireProject): Confirmation => ({
  title: `Deactivate ${escapeBidi(name)}?`,
  message:
    'All its tokens are refused from the next request on, and requests in flight are ended. You can activate the project again.',
  verb: 'Deactivate',
  isDangerous: true,
});

async function toRevokeAll({ id, name }: WireProject, request: PageRequest): Promise<Confirmation> {
  const { total } = await request.client().tokens({ project_id: id, active_only: 'true', limit: '1' });
  return {
    title: `Revoke all tokens of ${escapeBidi(name)}?`,
    message: `${counted(total ?? 0, 'token')} can be used now. Their clients get 401 from the next request on, and requests in flight are ended. You can reactivate the tokens one by one.`,
    verb: 'Revoke all',
    isDangerous: true,
  };
}

/** Routes of a change with a confirmation page: the page, and the change. */
function confirmedChange(
  what: string,
  asking: (project: WireProject, request: PageRequest) => Confirmation | Promise<Confirmation>,
  run: (request: PageRequest, id: string) => Promise<string>,
) {
  const ask = async (request: PageRequest, refused: string | null = null): Promise<PageResponse> => {
    const project = await request.client().project(idOf(request));
    const { title, ...asked } = await asking(project, request);
    const back = `projects/${project.id}`;
    const reason = request.form.get('reason') ?? '';
    const body = confirmPage({ title, ...asked, to: `${back}/${what}`, back, refused, reason });
    return { title, section: 'projects', body, ...statusOf(refused) };
  };
  const path = `/projects/:id/${what}`;
  return [
    get(path, (request) => ask(request)),
    post(path, async (request) => {
      let done = '';
      const refused = await refusalOf(async () => {
        done = await run(request, idOf(request));
      });
      return refused === null ? { to: `projects/${idOf(request)}?${done}` } : ask(request, refused);
    }),
  ];
}

const setActive = (isActive: boolean, done: string) => async (request: PageRequest, id: string) => {
  await request.changeClient().updateProject(id, { is_active: isActive });
  return `done=${done}`;
};

const newProject = (name: string, refused: string | null): PageResponse => ({
  title: 'New project',
  section: 'projects',
  body: newProjectPage({ name, refused }),
  ...statusOf(refused),
});

export const projectRoutes = [
  get('/projects', async (request) => {
    const filter = parametersOf(request.query, ['is_active', 'cursor']);
    const { items, ...page } = await listPage(() => request.client().projects(filter));
    const body = projectsPage({ projects: items, ...page, query: request.query });
    return { title: 'Projects', section: 'projects', isLive: true, body, ...statusOf(page.refused) };
  }),
  get('/projects/new', () => Promise.resolve(newProject('', null))),
  post('/projects/new', async (request) => {
    const name = request.form.get('name') ?? '';
    let id = '';
    const refused = await refusalOf(async () => {
      ({ id } = await request.changeClient().createProject({ name, api_key: request.form.get('api_key') ?? '' }));
    });
    return refused === null ? { to: `projects/${id}?done=created` } : newProject(name, refused);
  }),
  get('/projects/:id', (request) => show(request)),
  post('/projects/:id/rename', (request) => change(request, { name: request.form.get('name') ?? '' }, 'renamed')),
  post('/projects/:id/key', (request) => change(request, { api_key: request.form.get('api_key') ?? '' }, 'key')),
  ...confirmedChange('activate', toActivate, setActive(true, 'activated')),
  ...confirmedChange('deactivate', toDeactivate, setActive(false, 'deactivated')),
  ...confirmedChange('revoke-all', toRevokeAll, async (request, id) => {
    const { revoked_count: count } = await request.changeClient().revokeTokensOf(id);
    return `revoked=${count}`;
  }),
];
