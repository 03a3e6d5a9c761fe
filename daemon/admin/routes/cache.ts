import type { CachePurge } from '../../api/contract.js';
import { countDone } from '../done.js';
import { cachePage, type CacheProps } from '../pages/cache.js';
import { confirmPage } from '../pages/confirm.js';
import { counted, plain } from '../pages/words.js';
import { allProjects, type Answer, get, post, refusal, refusedBecause, statusOf, type Visit } from '../visit.js';

type Given = CacheProps['given'];

function givenIn(fields: URLSearchParams): Given {
  const field = (name: string) => fields.get(name) ?? '';
  return { what: field('what'), method: field('method'), url: field('url').trim(), projectId: field('project_id') };
}

const fieldsOf = ({ what, method, url, projectId }: Given) => ({ what, method, url, project_id: projectId });

/** @throws {ApiError} for none of the three. */
function selectionOf({ what, method, url, projectId }: Given): CachePurge {
  if (what === 'resource') return { method: method as 'GET' | 'POST', url };
  if (what === 'project') return { project_id: projectId };
  if (what === 'all') return { all: true };
  throw refusal('say what is to be purged');
}

async function show(visit: Visit, given: Given, refused: string | null): Promise<Answer> {
  const client = visit.client();
  const [cache, projects] = await Promise.all([client.cache(), allProjects(client)]);
  const body = cachePage({ cache, projects, given, done: countDone(visit, 'purged', 'answer'), refused });
  return { title: 'Cache', section: 'cache', isLive: true, body, ...statusOf(refused) };
}

async function whoseAnswers({ what, method, url, projectId }: Given, visit: Visit): Promise<string> {
  if (what === 'resource') return `All variants of ${method} ${plain(url)}, in every project.`;
  if (what === 'all') return 'All answers of all projects.';
  const { name } = await visit.client().project(projectId);
  return `All answers of ${plain(name)}.`;
}

/** Counts what would go, and asks. */
async function ask(visit: Visit, given: Given, refused: string | null): Promise<Answer> {
  let count = 0;
  const refusedToCount = await refusedBecause(async () => {
    ({ purged_count: count } = await visit.client().purgeCache({ ...selectionOf(given), dry_run: true }));
  });
  if (refusedToCount !== null) return show(visit, given, refusedToCount);
  const title = `Purge ${counted(count, 'answer')}?`;
  const body = confirmPage({
    title,
    says: `${await whoseAnswers(given, visit)} The next request for one of them goes to the upstream again.`,
    to: 'cache/purge',
    back: 'cache',
    verb: 'Purge',
    isDangerous: true,
    fields: fieldsOf(given),
    refused,
    reason: visit.form.get('reason') ?? '',
  });
  return { title, section: 'cache', body, ...statusOf(refused) };
}

const NOTHING_GIVEN: Given = { what: '', method: 'GET', url: '', projectId: '' };

export const cacheRoutes = [
  get('/cache', (visit) => show(visit, NOTHING_GIVEN, null)),
  get('/cache/purge', (visit) => ask(visit, givenIn(visit.query), null)),
  post('/cache/purge', async (visit) => {
    const given = givenIn(visit.form);
    let count = 0;
    const refused = await refusedBecause(async () => {
      ({ purged_count: count } = await visit.changing().purgeCache(selectionOf(given)));
    });
    return refused === null ? { to: `cache?purged=${count}` } : ask(visit, given, refused);
  }),
];
