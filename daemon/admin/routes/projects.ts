import { counted } from '../../api/formats.js';
import { KEY_CHECK_SENTENCES, projectCheckSentence } from '../../api/checked-key.js';
import { ApiError } from '../../api/client.js';
import type { ProjectPatch, WireProject, WireProjectChanged } from '../../api/contract.js';
import { missingUsageOf, providerForm, upstreamOf } from '../provider-form.js';
import { projectPage } from '../pages/project.js';
import { changeProviderPage, EMPTY_PROVIDER_FORM, providerFormOf } from '../pages/provider.js';
import { newProjectPage, projectsPage } from '../pages/projects.js';
import { escapeBidi } from '../pages/formats.js';
import {
  changed,
  countMessage,
  doneMessage,
  get,
  invalidRequest,
  listPage,
  type PageRequest,
  type PageResponse,
  parametersOf,
  post,
  statusOf,
} from '../page-request.js';
import { type Confirmation, confirmedChange } from './confirmed-change.js';
import { usageFor } from '../pages/traffic.js';

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
  const { client } = request;
  const project = await client.project(request.id);
  const [used, records] = await Promise.all([
    usageFor(request, { project_id: project.id }),
    client.auditRecords({ project_id: project.id, limit: RECORDS_SHOWN }),
  ]);
  const done = refused === null ? (said ?? countMessage(request, 'revoked', 'token') ?? doneWords(request)) : null;
  const body = projectPage({
    project,
    used,
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
  const check = await request.client.checkProject(request.id);
  const sentence = projectCheckSentence(check);
  return check.result === 'accepted'
    ? show(request, null, { said: sentence, isAnswer: true })
    : show(request, sentence, { isAnswer: true });
}

async function askProvider(request: PageRequest, refused: string | null = null): Promise<PageResponse> {
  const project = await request.client.project(request.id);
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
  const before = await request.client.project(id);
  const isDefault = upstream.upstream_base_url === null && before.upstream_base_url === null;
  return { ...(isDefault ? { upstream_base_url: null } : upstream), ...missingUsageOf(given) };
}

function changeProvider(request: PageRequest): Promise<PageResponse> {
  const { id, changeClient: client } = request;
  const hasKey = (request.form.get('api_key') ?? '') !== '';
  return changed(
    async () => {
      const changes = await providerChange(request, id);
      const { check } = hasKey
        ? await sendKey(request, (key) => client.updateProject(id, { ...changes, ...key }))
        : { check: await client.updateProject(id, changes).then(() => '', asFormError) };
      return `projects/${id}?done=provider${check}`;
    },
    (refused) => askProvider(request, refused),
  );
}

function rename(request: PageRequest): Promise<PageResponse> {
  const { id, changeClient, form } = request;
  return changed(
    async () => {
      await changeClient.updateProject(id, { name: form.get('name') ?? '' });
      return `projects/${id}?done=renamed`;
    },
    (refused) => show(request, refused),
  );
}

function changeKey(request: PageRequest): Promise<PageResponse> {
  const { id, changeClient } = request;
  return changed(
    async () => {
      const { check } = await sendKey(request, (fields) => changeClient.updateProject(id, fields));
      return `projects/${id}?done=key${check}`;
    },
    (refused) => show(request, refused),
  );
}

// ---- changes with a confirmation page

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
  const { total } = await request.client.tokens({ project_id: id, active_only: 'true', limit: '1' });
  return {
    title: `Revoke all tokens of ${escapeBidi(name)}?`,
    message: `${counted(total ?? 0, 'token')} can be used now. Their clients get 401 from the next request on, and requests in flight are ended. You can reactivate the tokens one by one.`,
    verb: 'Revoke all',
    isDangerous: true,
  };
}

const confirmed = (
  what: string,
  asking: (project: WireProject, request: PageRequest) => Confirmation | Promise<Confirmation>,
  run: (request: PageRequest) => Promise<string>,
) =>
  confirmedChange({
    section: 'projects',
    what,
    asking: async (request) => asking(await request.client.project(request.id), request),
    run,
  });

const setActive =
  (isActive: boolean, done: string) =>
  async ({ changeClient, id }: PageRequest) => {
    await changeClient.updateProject(id, { is_active: isActive });
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

function createProject(request: PageRequest): Promise<PageResponse> {
  const name = request.form.get('name') ?? '';
  return changed(
    async () => {
      const given = providerForm(request, EMPTY_PROVIDER_FORM);
      const settings = { ...upstreamOf(given), ...missingUsageOf(given) };
      const create: KeyChange = (fields) => request.changeClient.createProject({ name, ...settings, ...fields });
      const { id, check } = await sendKey(request, create);
      return `projects/${id}?done=created${check}`;
    },
    (refused) => newProject(request, refused),
  );
}

export const projectRoutes = [
  get('/projects', async (request) => {
    const filter = parametersOf(request.query, ['is_active', 'cursor']);
    const { items, ...page } = await listPage(() => request.client.projects(filter));
    const body = projectsPage({ projects: items, ...page, query: request.query });
    return { title: 'Projects', section: 'projects', isLive: true, body, ...statusOf(page.refused) };
  }),
  get('/projects/new', (request) => Promise.resolve(newProject(request, null))),
  post('/projects/new', createProject),
  get('/projects/:id', (request) => show(request)),
  post('/projects/:id/rename', rename),
  post('/projects/:id/key', changeKey),
  get('/projects/:id/provider', (request) => askProvider(request)),
  post('/projects/:id/provider', changeProvider),
  post('/projects/:id/check', checkProvider),
  ...confirmed('activate', toActivate, setActive(true, 'activated')),
  ...confirmed('deactivate', toDeactivate, setActive(false, 'deactivated')),
  ...confirmed('revoke-all', toRevokeAll, async ({ changeClient, id }) => {
    const { revoked_count: count } = await changeClient.revokeTokensOf(id);
    return `revoked=${count}`;
  }),
];
