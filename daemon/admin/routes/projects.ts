import { counted } from '../../api/formats.js';
import { KEY_CHECK_SENTENCES, type KeyCheckResult, sendCheckedKey } from '../../api/checked-key.js';
import { ApiError } from '../../api/client.js';
import type { ProjectPatch, WireProject, WireProjectChanged } from '../../api/contract.js';
import { countMessage, doneMessage } from '../done-message.js';
import { confirmPage, type ConfirmProps } from '../pages/confirm.js';
import { projectPage } from '../pages/project.js';
import { newProjectPage, projectsPage } from '../pages/projects.js';
import { escapeBidi } from '../pages/formats.js';
import {
  type PageResponse,
  get,
  invalidRequest,
  parametersOf,
  listPage,
  post,
  refusalOf,
  statusOf,
  type PageRequest,
} from '../page-request.js';
import { usageFor } from './overview.js';

const RECORDS_SHOWN = '8';

/** Success messages. `check` in the query adds how the check of the key ended. */
const DONE: Readonly<Record<string, string>> = {
  created: 'Project created.',
  renamed: 'Project renamed.',
  key: 'Upstream key replaced. New requests use the new key.',
  activated: 'Project activated. Its tokens are accepted again.',
  deactivated: 'Project deactivated. Its tokens are refused from now on.',
};

const NEXT_STEP = 'Now issue a token for it.';

function doneWords(request: PageRequest): string | null {
  const done = doneMessage(request, DONE);
  const check = doneMessage(request, KEY_CHECK_SENTENCES, 'check');
  const next = request.query.get('done') === 'created' ? NEXT_STEP : null;
  return done === null ? null : [done, check, next].filter((words) => words !== null).join(' ');
}

/** The form has the checkbox selected, until it is sent without. */
const isKeyChecked = ({ form }: PageRequest) => !form.has('api_key') || form.get('check_key') === 'yes';

type KeyChange = (fields: { api_key: string; check_key?: true }) => Promise<WireProjectChanged>;

/** Sends a change with the key of the form. @returns the end of the query of the next page. @throws {ApiError} 400 if the check failed: nothing was changed. */
async function sendKey(request: PageRequest, send: KeyChange): Promise<{ id: string; check: string }> {
  const key = { api_key: request.form.get('api_key') ?? '' };
  if (!isKeyChecked(request)) return { id: (await send(key)).id, check: '' };
  const sent = sendCheckedKey((check) => send({ ...key, ...check }));
  const { project, isChecked } = await sent.catch(asFormError);
  const result: KeyCheckResult | undefined = isChecked ? project.key_check : 'not_supported';
  return { id: project.id, check: result === undefined ? '' : `&check=${result}` };
}

/** Turns a failed check of a key into an error of the form. */
function asFormError(error: unknown): never {
  if (!(error instanceof ApiError)) throw error;
  const { code, message } = error;
  if (code === 'key_refused') throw invalidRequest(message, code);
  // The daemon names the field of the API.
  if (code === 'key_not_checked')
    throw invalidRequest(message.replace(/omit check_key$/, 'clear the checkbox below its field'), code);
  throw error;
}

const idOf = ({ params }: PageRequest) => params.id ?? '';

async function show(request: PageRequest, refused: string | null = null): Promise<PageResponse> {
  const client = request.client();
  const project = await client.project(idOf(request));
  const [used, records] = await Promise.all([
    usageFor(request, client, { project_id: project.id }),
    client.auditRecords({ project_id: project.id, limit: RECORDS_SHOWN }),
  ]);
  const done = refused === null ? (countMessage(request, 'revoked', 'token') ?? doneWords(request)) : null;
  const body = projectPage({
    project,
    ...used,
    records: records.items,
    done,
    refused,
    isKeyChecked: isKeyChecked(request),
  });
  return { title: escapeBidi(project.name), section: 'projects', isLive: true, body, ...statusOf(refused) };
}

/** Makes a change from a form on the project's page. */
async function change(request: PageRequest, patch: ProjectPatch, done: string): Promise<PageResponse> {
  const id = idOf(request);
  const refused = await refusalOf(() => request.changeClient().updateProject(id, patch));
  return refused === null ? { to: `projects/${id}?done=${done}` } : show(request, refused);
}

async function changeKey(request: PageRequest): Promise<PageResponse> {
  const id = idOf(request);
  let to = '';
  const refused = await refusalOf(async () => {
    const { check } = await sendKey(request, (fields) => request.changeClient().updateProject(id, fields));
    to = `projects/${id}?done=key${check}`;
  });
  return refused === null ? { to } : show(request, refused);
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

const newProject = (request: PageRequest, refused: string | null): PageResponse => ({
  title: 'New project',
  section: 'projects',
  body: newProjectPage({ name: request.form.get('name') ?? '', isKeyChecked: isKeyChecked(request), refused }),
  ...statusOf(refused),
});

async function createProject(request: PageRequest): Promise<PageResponse> {
  const name = request.form.get('name') ?? '';
  let to = '';
  const refused = await refusalOf(async () => {
    const client = request.changeClient();
    const { id, check } = await sendKey(request, (fields) => client.createProject({ name, ...fields }));
    to = `projects/${id}?done=created${check}`;
  });
  return refused === null ? { to } : newProject(request, refused);
}

export const projectRoutes = [
  get('/projects', async (request) => {
    const filter = parametersOf(request.query, ['is_active', 'cursor']);
    const { items, ...page } = await listPage(() => request.client().projects(filter));
    const body = projectsPage({ projects: items, ...page, query: request.query });
    return { title: 'Projects', section: 'projects', isLive: true, body, ...statusOf(page.refused) };
  }),
  get('/projects/new', (request) => Promise.resolve(newProject(request, null))),
  post('/projects/new', createProject),
  get('/projects/:id', (request) => show(request)),
  post('/projects/:id/rename', (request) => change(request, { name: request.form.get('name') ?? '' }, 'renamed')),
  post('/projects/:id/key', changeKey),
  ...confirmedChange('activate', toActivate, setActive(true, 'activated')),
  ...confirmedChange('deactivate', toDeactivate, setActive(false, 'deactivated')),
  ...confirmedChange('revoke-all', toRevokeAll, async (request, id) => {
    const { revoked_count: count } = await request.changeClient().revokeTokensOf(id);
    return `revoked=${count}`;
  }),
];
