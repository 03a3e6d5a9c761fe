/** The busiest tokens, projects and models: a page and exports. */
import { topFields } from '../../../console/columns/top.js';
import type { TopQuery, WireTop } from '../../api/contract.js';
import { DEFAULT_TOP_ROWS, MAX_TOP_ROWS, TOP_DIMENSIONS, TOP_WINDOWS } from '../../api/vocabulary.js';
import { exported } from '../export.js';
import { topPage, TOP_ORDERS } from '../pages/top.js';
import { allProjects, attempt, choiceOf, get, type PageRequest, parametersOf, statusOf } from '../page-request.js';
import { withTokenId } from '../token-filter.js';

const ALL = 'all';

/** What the page shows: the choices of its query, or the default ones. @throws {ApiError} if one is invalid. */
function choicesOf({ query }: PageRequest) {
  const by = choiceOf(query, 'by', TOP_DIMENSIONS, 'token');
  return {
    by,
    window: choiceOf(query, 'window', TOP_WINDOWS, '1h'),
    // As on the command line: models seldom fail, but they cost.
    sort: choiceOf(
      query,
      'sort',
      TOP_ORDERS.map(([order]) => order),
      by === 'model' ? 'tokens' : 'errors',
    ),
  };
}

type Chosen = ReturnType<typeof choicesOf>;

async function read({ client, query }: PageRequest, chosen: Chosen, limit: number): Promise<WireTop> {
  const filter: TopQuery = await withTokenId(client, parametersOf(query, ['project_id', 'token_id']));
  return client.top({ ...filter, ...chosen, limit: String(limit) });
}

const limitOf = ({ query }: PageRequest) => (query.get('rows') === ALL ? MAX_TOP_ROWS : DEFAULT_TOP_ROWS);

export const topRoutes = [
  get('/top', async (request) => {
    const projects = await allProjects(request.client);
    let chosen: Chosen = { by: 'token', window: '1h', sort: 'errors' };
    const { value: top, refused } = await attempt<WireTop | null>(async () => {
      chosen = choicesOf(request);
      return read(request, chosen, limitOf(request));
    }, null);
    const body = topPage({ top, ...chosen, query: request.query, projects, refused });
    return { title: 'Top', section: 'top', isLive: true, body, ...statusOf(refused) };
  }),
  get('/top/export', async (request) => {
    const chosen = choicesOf(request);
    const rows = async function* () {
      yield (await read(request, chosen, MAX_TOP_ROWS)).rows;
    };
    return exported(request, 'top', topFields(chosen.by), rows());
  }),
];
