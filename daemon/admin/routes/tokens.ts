import type { WireToken } from '../../api/contract.js';
import { historyOf } from '../../api/token-history.js';
import { doneOf } from '../done.js';
import { confirmPage } from '../pages/confirm.js';
import { tokenPage } from '../pages/token.js';
import { tokensPage } from '../pages/tokens.js';
import { plain, shortId } from '../pages/words.js';
import {
  allProjects,
  type Answer,
  get,
  givenOf,
  hoursFrom,
  listed,
  post,
  refusedBecause,
  statusOf,
  type Visit,
} from '../visit.js';
import { bulkRoutes } from './bulk.js';
import { issuingRoutes } from './issuing.js';
import { usageFor } from './overview.js';

/** Of each kind of change. */
const CHANGES_SHOWN = 10;
const FILTERS = ['q', 'project_id', 'state', 'used_over', 'sort', 'cursor'] as const;

const idOf = ({ params }: Visit) => params.id ?? '';
const titleOf = ({ id, name }: WireToken) => (name === null ? `token ${shortId(id)}` : plain(name));

async function list(visit: Visit): Promise<Answer> {
  const client = visit.client();
  const { query, nowMs } = visit;
  const expiresBefore = hoursFrom(nowMs, query.get('expires_within'), 1);
  const filter = {
    ...givenOf(query, FILTERS),
    ...(expiresBefore && { expires_before: expiresBefore, expires_after: new Date(nowMs).toISOString() }),
  };
  const [projects, { items, ...page }] = await Promise.all([allProjects(client), listed(() => client.tokens(filter))]);
  const body = tokensPage({ tokens: items, ...page, query, projects });
  return { title: 'Tokens', section: 'tokens', isLive: true, body, ...statusOf(page.refused) };
}

const DONE: Readonly<Record<string, string>> = {
  revoked: 'Revoked. It is refused from the next request on; reactivating it undoes that.',
  reactivated: 'Reactivated. It passes again, unless its time or its requests are over.',
};

async function show(visit: Visit): Promise<Answer> {
  const client = visit.client();
  const token = await client.token(idOf(visit));
  const [project, used, { changes, lastUse }] = await Promise.all([
    client.project(token.project_id),
    usageFor(visit, client, { token_id: token.id }),
    historyOf(client, token.id, CHANGES_SHOWN),
  ]);
  const records = [...(lastUse ? [lastUse] : []), ...changes].sort((one, other) => other.time.localeCompare(one.time));
  const body = tokenPage({ token, project, ...used, records, done: doneOf(visit, DONE) });
  return { title: titleOf(token), section: 'tokens', isLive: true, body };
}

const CHANGES = {
  revoke: {
    verb: 'Revoke',
    isActive: false,
    done: 'revoked',
    says: 'Its client gets 401 from the next request on, and requests in flight are ended. It can be reactivated.',
  },
  reactivate: {
    verb: 'Reactivate',
    isActive: true,
    done: 'reactivated',
    says: 'It passes again from the next request on, unless its time or its requests are over.',
  },
} as const;

type ChangeName = keyof typeof CHANGES;

async function ask(visit: Visit, what: ChangeName, refused: string | null = null): Promise<Answer> {
  const token = await visit.client().token(idOf(visit));
  const { verb, isActive, says } = CHANGES[what];
  const title = `${verb} ${titleOf(token)}?`;
  const back = `tokens/${token.id}`;
  const reason = visit.form.get('reason') ?? '';
  const body = confirmPage({
    title,
    says,
    to: `${back}/${what}`,
    back,
    verb,
    isDangerous: !isActive,
    refused,
    reason,
  });
  return { title, section: 'tokens', body, ...statusOf(refused) };
}

async function change(visit: Visit, what: ChangeName): Promise<Answer> {
  const { isActive, done } = CHANGES[what];
  const id = idOf(visit);
  const refused = await refusedBecause(() => visit.changing().updateToken(id, { is_active: isActive }));
  return refused === null ? { to: `tokens/${id}?done=${done}` } : ask(visit, what, refused);
}

export const tokenRoutes = [
  get('/tokens', list),
  ...issuingRoutes,
  ...bulkRoutes,
  get('/tokens/:id', show),
  get('/tokens/:id/revoke', (visit) => ask(visit, 'revoke')),
  post('/tokens/:id/revoke', (visit) => change(visit, 'revoke')),
  get('/tokens/:id/reactivate', (visit) => ask(visit, 'reactivate')),
  post('/tokens/:id/reactivate', (visit) => change(visit, 'reactivate')),
];
