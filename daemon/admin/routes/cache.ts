import { counted } from '../../api/formats.js';
import type { CachePurge } from '../../api/contract.js';
import { countMessage } from '../done-message.js';
import { cachePage, type CacheProps } from '../pages/cache.js';
import { confirmPage } from '../pages/confirm.js';
import { escapeBidi } from '../pages/formats.js';
import {
  allProjects,
  type PageResponse,
  get,
  post,
  invalidRequest,
  refusalOf,
  statusOf,
  type PageRequest,
} from '../page-request.js';

type PurgeForm = CacheProps['form'];

function purgeFormOf(fields: URLSearchParams): PurgeForm {
  const field = (name: string) => fields.get(name) ?? '';
  return { what: field('what'), method: field('method'), url: field('url').trim(), projectId: field('project_id') };
}

/** @throws {ApiError} if `what` is none of the three. */
function selectionOf({ what, method, url, projectId }: PurgeForm): CachePurge {
  if (what === 'resource') return { method: method as 'GET' | 'POST', url };
  if (what === 'project') return { project_id: projectId };
  if (what === 'all') return { all: true };
  throw invalidRequest('choose what to purge');
}

async function show(request: PageRequest, given: PurgeForm, refused: string | null): Promise<PageResponse> {
  const client = request.client();
  const [cache, projects] = await Promise.all([client.cache(), allProjects(client)]);
  const body = cachePage({ cache, projects, form: given, done: countMessage(request, 'purged', 'response'), refused });
  return { title: 'Cache', section: 'cache', isLive: true, body, ...statusOf(refused) };
}

async function describeSelection({ what, method, url, projectId }: PurgeForm, request: PageRequest): Promise<string> {
  if (what === 'resource') return `All variants of ${method} ${escapeBidi(url)}, in every project.`;
  if (what === 'all') return 'All responses of all projects.';
  const { name } = await request.client().project(projectId);
  return `All responses of ${escapeBidi(name)}.`;
}

/** Counts the responses to remove and shows the confirmation page. */
async function ask(request: PageRequest, given: PurgeForm, refused: string | null): Promise<PageResponse> {
  let count = 0;
  const refusedToCount = await refusalOf(async () => {
    ({ purged_count: count } = await request.client().purgeCache({ ...selectionOf(given), dry_run: true }));
  });
  if (refusedToCount !== null) return show(request, given, refusedToCount);
  const title = `Purge ${counted(count, 'response')}?`;
  const body = confirmPage({
    title,
    message: `${await describeSelection(given, request)} The next request for any of them is sent to the upstream again.`,
    to: 'cache/purge',
    back: 'cache',
    verb: 'Purge',
    isDangerous: true,
    fields: [
      ['what', given.what],
      ['method', given.method],
      ['url', given.url],
      ['project_id', given.projectId],
    ],
    refused,
    reason: request.form.get('reason') ?? '',
  });
  return { title, section: 'cache', body, ...statusOf(refused) };
}

const EMPTY_FORM: PurgeForm = { what: '', method: 'GET', url: '', projectId: '' };

export const cacheRoutes = [
  get('/cache', (request) => show(request, EMPTY_FORM, null)),
  get('/cache/purge', (request) => ask(request, purgeFormOf(request.query), null)),
  post('/cache/purge', async (request) => {
    const given = purgeFormOf(request.form);
    let count = 0;
    const refused = await refusalOf(async () => {
      ({ purged_count: count } = await request.changeClient().purgeCache(selectionOf(given)));
    });
    return refused === null ? { to: `cache?purged=${count}` } : ask(request, given, refused);
  }),
];
