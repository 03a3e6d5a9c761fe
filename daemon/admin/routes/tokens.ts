import { shortId } from '../../../console/columns/cell-text.js';
import { TOKEN_FIELDS } from '../../../console/columns/tokens.js';
import type { WireToken } from '../../api/contract.js';
import { loadTokenHistory } from '../../api/token-history.js';
import { doneMessage } from '../done-message.js';
import { exportDownload, pagesOf } from '../export.js';
import { confirmPage } from '../pages/confirm.js';
import { tokenPage } from '../pages/token.js';
import { tokensPage } from '../pages/tokens.js';
import { escapeBidi } from '../pages/formats.js';
import {
  allProjects,
  type PageResponse,
  get,
  parametersOf,
  listPage,
  post,
  refusalOf,
  statusOf,
  type PageRequest,
} from '../page-request.js';
import { tokenFilterOf } from '../token-filter.js';
import { bulkRoutes } from './bulk.js';
import { issuingRoutes } from './issuing.js';
import { usageFor } from './overview.js';

/** Maximum number of records of each kind of change. */
const CHANGES_SHOWN = 10;

const idOf = ({ params }: PageRequest) => params.id ?? '';
const titleOf = ({ id, name }: WireToken) => (name === null ? `token ${shortId(id)}` : escapeBidi(name));

const queryOf = (query: URLSearchParams) => ({ ...tokenFilterOf(query), ...parametersOf(query, ['sort', 'cursor']) });

/** All tokens that match the filter, without their secrets, which nobody has. */
async function exported(request: PageRequest): Promise<PageResponse> {
  const { query } = request;
  const client = request.client();
  const { cursor, ...filter } = queryOf(query);
  const pages = pagesOf((paging) => client.tokens({ ...filter, ...paging }), cursor);
  return { download: await exportDownload('tokens', query.get('format'), TOKEN_FIELDS, pages) };
}

async function list(request: PageRequest): Promise<PageResponse> {
  const client = request.client();
  const { query } = request;
  const [projects, { items, ...page }] = await Promise.all([
    allProjects(client),
    listPage(async () => client.tokens(queryOf(query))),
  ]);
  const body = tokensPage({ tokens: items, ...page, query, projects });
  return { title: 'Tokens', section: 'tokens', isLive: true, body, ...statusOf(page.refused) };
}

const DONE: Readonly<Record<string, string>> = {
  revoked: 'Token revoked. It is refused from the next request on. You can reactivate it.',
  reactivated: 'Token reactivated. It is accepted again, unless it has expired or reached its cap.',
};

async function show(request: PageRequest): Promise<PageResponse> {
  const client = request.client();
  const token = await client.token(idOf(request));
  const [used, { changes, lastUse }] = await Promise.all([
    usageFor(request, client, { token_id: token.id }),
    loadTokenHistory(client, token.id, CHANGES_SHOWN),
  ]);
  const records = [...(lastUse ? [lastUse] : []), ...changes].sort((one, other) => other.time.localeCompare(one.time));
  const body = tokenPage({ token, ...used, records, done: doneMessage(request, DONE) });
  return { title: titleOf(token), section: 'tokens', isLive: true, body };
}

const CHANGES = {
  revoke: {
    verb: 'Revoke',
    isActive: false,
    done: 'revoked',
    says: 'Clients of the token get 401 from the next request on, and requests in flight are ended. You can reactivate the token.',
  },
  reactivate: {
    verb: 'Reactivate',
    isActive: true,
    done: 'reactivated',
    says: 'The token is accepted again from the next request on, unless it has expired or reached its cap.',
  },
} as const;

type ChangeName = keyof typeof CHANGES;

async function ask(request: PageRequest, what: ChangeName, refused: string | null = null): Promise<PageResponse> {
  const token = await request.client().token(idOf(request));
  const { verb, isActive, says } = CHANGES[what];
  const title = `${verb} ${titleOf(token)}?`;
  const back = `tokens/${token.id}`;
  const reason = request.form.get('reason') ?? '';
  const body = confirmPage({
    title,
    message: says,
    to: `${back}/${what}`,
    back,
    verb,
    isDangerous: !isActive,
    refused,
    reason,
  });
  return { title, section: 'tokens', body, ...statusOf(refused) };
}

async function change(request: PageRequest, what: ChangeName): Promise<PageResponse> {
  const { isActive, done } = CHANGES[what];
  const id = idOf(request);
  const refused = await refusalOf(() => request.changeClient().updateToken(id, { is_active: isActive }));
  return refused === null ? { to: `tokens/${id}?done=${done}` } : ask(request, what, refused);
}

export const tokenRoutes = [
  get('/tokens', list),
  get('/tokens/export', exported),
  ...issuingRoutes,
  ...bulkRoutes,
  get('/tokens/:id', show),
  get('/tokens/:id/revoke', (request) => ask(request, 'revoke')),
  post('/tokens/:id/revoke', (request) => change(request, 'revoke')),
  get('/tokens/:id/reactivate', (request) => ask(request, 'reactivate')),
  post('/tokens/:id/reactivate', (request) => change(request, 'reactivate')),
];
