import { counted } from '../../api/formats.js';
import type { ManagementClient } from '../../api/client.js';
import type { CachePurge } from '../../api/contract.js';
import { cachePage, type CacheProps } from '../pages/cache.js';
import { confirmPage } from '../pages/confirm.js';
import { escapeBidi } from '../pages/formats.js';
import {
  allProjects,
  attempt,
  changed,
  countMessage,
  formValues,
  get,
  invalidRequest,
  type PageRequest,
  type PageResponse,
  post,
  statusOf,
} from '../page-request.js';

type PurgeForm = CacheProps['form'];

const EMPTY_FORM: PurgeForm = { what: '', method: 'GET', url: '', project_id: '' };

/** @throws {ApiError} if `what` is none of the three. */
function selectionOf({ what, method, url, project_id }: PurgeForm): CachePurge {
  if (what === 'resource') return { method: method as 'GET' | 'POST', url };
  if (what === 'project') return { project_id };
  if (what === 'all') return { all: true };
  throw invalidRequest('choose what to purge');
}

/** @returns the number of responses. */
async function purge(client: ManagementClient, given: PurgeForm, isDryRun = false): Promise<number> {
  return (await client.purgeCache({ ...selectionOf(given), ...(isDryRun && { dry_run: true }) })).purged_count;
}

async function show(request: PageRequest, given: PurgeForm, refused: string | null): Promise<PageResponse> {
  const { client } = request;
  const [cache, projects] = await Promise.all([client.cache(), allProjects(client)]);
  const body = cachePage({ cache, projects, form: given, done: countMessage(request, 'purged', 'response'), refused });
  return { title: 'Cache', section: 'cache', isLive: true, body, ...statusOf(refused) };
}

async function describeSelection(
  { what, method, url, project_id: id }: PurgeForm,
  request: PageRequest,
): Promise<string> {
  if (what === 'resource') return `All variants of ${method} ${escapeBidi(url)}, in every project.`;
  if (what === 'all') return 'All responses of all projects.';
  const { name } = await request.client.project(id);
  return `All responses of ${escapeBidi(name)}.`;
}

/** Counts the responses to remove and shows the confirmation page. */
async function ask(request: PageRequest, given: PurgeForm, refused: string | null): Promise<PageResponse> {
  const counting = await attempt(() => purge(request.client, given, true), 0);
  if (counting.refused !== null) return show(request, given, counting.refused);
  const title = `Purge ${counted(counting.value, 'response')}?`;
  const body = confirmPage({
    title,
    message: `${await describeSelection(given, request)} The next request for any of them is sent to the upstream again.`,
    to: 'cache/purge',
    back: 'cache',
    verb: 'Purge',
    isDangerous: true,
    fields: Object.entries(given),
    refused,
    reason: request.form.get('reason') ?? '',
  });
  return { title, section: 'cache', body, ...statusOf(refused) };
}

export const cacheRoutes = [
  get('/cache', (request) => show(request, EMPTY_FORM, null)),
  get('/cache/purge', (request) => ask(request, formValues(request.query, EMPTY_FORM), null)),
  post('/cache/purge', (request) => {
    const given = formValues(request.form, EMPTY_FORM);
    return changed(
      async () => `cache?purged=${await purge(request.changeClient, given)}`,
      (refused) => ask(request, given, refused),
    );
  }),
];
