import { shortId } from '../../../console/columns/cell-text.js';
import { TOKEN_FIELDS } from '../../../console/columns/tokens.js';
import type { WireToken } from '../../api/contract.js';
import { loadTokenHistory } from '../../api/token-history.js';
import { exported, pagesOf } from '../export.js';
import { tokenPage } from '../pages/token.js';
import { tokensPage } from '../pages/tokens.js';
import { escapeBidi } from '../pages/formats.js';
import {
  allProjects,
  doneMessage,
  get,
  listPage,
  type PageRequest,
  type PageResponse,
  parametersOf,
  statusOf,
} from '../page-request.js';
import { tokenFilterOf } from '../token-filter.js';
import { bulkRoutes } from '../pages/bulk.js';
import { confirmedChange } from '../pages/confirm.js';
import { issuingRoutes } from './issuing.js';
import { usageFor } from '../pages/traffic.js';

/** Maximum number of records of each kind of change. */
const CHANGES_SHOWN = 10;

const titleOf = ({ id, name }: WireToken) => (name === null ? `token ${shortId(id)}` : escapeBidi(name));

const queryOf = (query: URLSearchParams) => ({ ...tokenFilterOf(query), ...parametersOf(query, ['sort', 'cursor']) });

/** All tokens that match the filter, without their secrets, which nobody has. */
async function exportAll(request: PageRequest): Promise<PageResponse> {
  const { cursor, ...filter } = queryOf(request.query);
  const pages = pagesOf((paging) => request.client.tokens({ ...filter, ...paging }), cursor);
  return exported(request, 'tokens', TOKEN_FIELDS, pages);
}

async function list(request: PageRequest): Promise<PageResponse> {
  const { client, query } = request;
  const [projects, { items, ...page }] = await Promise.all([
    allProjects(client),
    listPage(async () => client.tokens(queryOf(query))),
  ]);
  const body = tokensPage({ tokens: items, ...page, query, projects });
  return { title: 'Tokens', section: 'tokens', isLive: true, body, ...statusOf(page.refused) };
}

const DONE = {
  revoked: 'Token revoked. It is refused from the next request on. You can reactivate it.',
  reactivated: 'Token reactivated. It is accepted again, unless it has expired or reached its cap.',
};

async function show(request: PageRequest): Promise<PageResponse> {
  const { client } = request;
  const token = await client.token(request.id);
  const [used, { changes, lastUse }] = await Promise.all([
    usageFor(request, { token_id: token.id }),
    loadTokenHistory(client, token.id, CHANGES_SHOWN),
  ]);
  const records = [...(lastUse ? [lastUse] : []), ...changes].sort((one, other) => other.time.localeCompare(one.time));
  const body = tokenPage({ token, used, records, done: doneMessage(request, DONE) });
  return { title: titleOf(token), section: 'tokens', isLive: true, body };
}

/** A change with a confirmation page. */
const change = (verb: 'Revoke' | 'Reactivate', isActive: boolean, done: keyof typeof DONE, message: string) =>
  confirmedChange({
    section: 'tokens',
    what: verb.toLowerCase(),
    asking: async ({ client, id }) => {
      const title = `${verb} ${titleOf(await client.token(id))}?`;
      return { title, message, verb, isDangerous: !isActive };
    },
    run: async ({ changeClient, id }) => {
      await changeClient.updateToken(id, { is_active: isActive });
      return `done=${done}`;
    },
  });

export const tokenRoutes = [
  get('/tokens', list),
  get('/tokens/export', exportAll),
  ...issuingRoutes,
  ...bulkRoutes,
  get('/tokens/:id', show),
  ...change(
    'Revoke',
    false,
    'revoked',
    'Clients of the token get 401 from the next request on, and requests in flight are ended. You can reactivate the token.',
  ),
  ...change(
    'Reactivate',
    true,
    'reactivated',
    'The token is accepted again from the next request on, unless it has expired or reached its cap.',
  ),
];
