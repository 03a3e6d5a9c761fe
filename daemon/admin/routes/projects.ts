import { counted } from '../../api/formats.js';
import { KEY_CHECK_SENTENCES, projectCheckSentence } from '../../api/checked-key.js';
import { ApiError } from '../../api/client.js';
import type { ProjectPatch, WireProject, WireProjectChanged } from '../../api/contract.js';
import { countMessage, doneMessage } from '../done-message.js';
import { missingUsageOf, providerForm, upstreamOf } from '../provider-form.js';
import { confirmPage, type ConfirmProps } from '../pages/confirm.js';
import { projectPage } from '../pages/project.js';
import { changeProviderPage, EMPTY_PROVIDER_FORM, providerFormOf } from '../pages/provider.js';
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
  provider: 'Provider changed. New requests go to it.',
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
  if (!isKeyChecked(request)) return { id: (await send(key).catch(asFormError)).id, check: '' };
  const { id, key_check: result } = await send({ ...key, check_key: true }).catch(asFormError);
  return { id, check: result === undefined ? '' : `&check=${result}` };
}

/** Turns a failed check of a key into an error of the form. */
function asFormError(error: unknown): never {
  if (!(error instanceof ApiError)) throw error;
  const { code, message } = error;
  if (code === 'key_required') throw invalidRequest('this provider is on another host: enter its key', code);
  if (code === 'key_refused') throw invalidRequest(message, code);
  // The daemon names the field of the API.
  if (code === 'key_not_checked')
    throw invalidRequest(message.replace(/omit check_key$/, 'clear the checkbox below its field'), code);
  throw error;
}

const idOf = ({ params }: PageRequest) => params.id ?? '';

interface Shown {
  /** A message of success in place of the usual one. */
  said?: string;
  /** The address of the response is that of a form, which has no page. */
  isAnswer?: boolean;
}

async function show(
  request: PageRequest,
  refused: string | null = null,
  { said, isAnswer = false }: Shown = {},
): Promise<PageResponse> {
  const client = request.client();
  const project = await client.project(idOf(request));
  const [used, records] = await Promise.all([
    usageFor(request, client, { project_id: project.id }),
    client.auditRecords({ project_id: project.id, limit: RECORDS_SHOWN }),
  ]);
  const done = refused === null ? (said ?? countMessage(request, 'revoked', 'token') ?? doneWords(request)) : null;
  const body = projectPage({
    project,
    ...used,
    records: records.items,
    done,
    refused,
    isKeyChecked: isKeyChecked(request),
  });
  const title = escapeBidi(project.name);
  if (isAnswer) return { title, section: 'projects', isLive: false, body };
  return { title, section: 'projects', isLive: true, body, ...statusOf(refused) };
}

/** Asks the provider. What is wrong there is an answer, not an error of this request. */
async function checkProvider(request: PageRequest): Promise<PageResponse> {
  const check = await request.client().checkProject(idOf(request));
  const sentence = projectCheckSentence(check);
  return check.result === 'accepted'
    ? show(request, null, { said: sentence, isAnswer: true })
    : show(request, sentence, { isAnswer: true });
}

async function askProvider(request: PageRequest, refused: string | null = null): Promise<PageResponse> {
  const project = await request.client().project(idOf(request));
  const body = changeProviderPage({
    project,
    given: providerForm(request, providerFormOf(project)),
    reason: request.form.get('reason') ?? '',
    isKeyChecked: isKeyChecked(request),
    refused,
  });
  return { title: 'Change provider', section: 'projects', body, ...statusOf(refused) };
}

/** The daemon's provider can have another header, which only the command line and the API set: it stays. */
async function providerChange(request: PageRequest, id: string): Promise<ProjectPatch> {
  const given = providerForm(request, EMPTY_PROVIDER_FORM);
  const upstream = upstreamOf(given);
  const before = await request.client().project(id);
  const isDefault = upstream.upstream_base_url === null && before.upstream_base_url === null;
  return { ...(isDefault ? { upstream_base_url: null } : upstream), ...missingUsageOf(given) };
}

async function changeProvider(request: PageRequest): Promise<PageResponse> {
  const id = idOf(request);
  let to = '';
  const refused = await refusalOf(async () => {
    const changes = await providerChange(request, id);
    const client = request.changeClient();
    const hasKey = (request.form.get('api_key') ?? '') !== '';
    const { check } = hasKey
      ? await sendKey(request, (key) => client.updateProject(id, { ...changes, ...key }))
      : { check: await client.updateProject(id, changes).then(() => '', asFormError) };
    to = `projects/${id}?done=provider${check}`;
  });
  return refused === null ? { to } : askProvider(request, refused);
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
  body: newProjectPage({
    name: request.form.get('name') ?? '',
    provider: providerForm(request, EMPTY_PROVIDER_FORM),
    isKeyChecked: isKeyChecked(request),
    refused,
  }),
  ...statusOf(refused),
});

async function createProject(request: PageRequest): Promise<PageResponse> {
  const name = request.form.get('name') ?? '';
  let to = '';
  const refused = await refusalOf(async () => {
    const client = request.changeClient();
    const given = providerForm(request, EMPTY_PROVIDER_FORM);
    const settings = { ...upstreamOf(given), ...missingUsageOf(given) };
    const { id, check } = await sendKey(request, (fields) => client.createProject({ name, ...settings, ...fields }));
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
  get('/projects/:id/provider', (request) => askProvider(request)),
  post('/projects/:id/provider', changeProvider),
  post('/projects/:id/check', checkProvider),
  ...confirmedChange('activate', toActivate, setActive(true, 'activated')),
  ...confirmedChange('deactivate', toDeactivate, setActive(false, 'deactivated')),
  ...confirmedChange('revoke-all', toRevokeAll, async (request, id) => {
    const { revoked_count: count } = await request.changeClient().revokeTokensOf(id);
    return `revoked=${count}`;
  }),
];
