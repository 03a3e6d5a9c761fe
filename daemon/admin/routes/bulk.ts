/** One change for all tokens that are marked: asked for on a page, made one by one, each with a record of its own. */
import { ApiError, type ManagementClient } from '../../api/client.js';
import { DEFAULT_PAGE_SIZE, WHOLE_ID } from '../../api/vocabulary.js';
import { bulkAskPage, bulkDonePage, type BulkResult } from '../pages/bulk.js';
import { type Answer, post, refusal, refusedBecause, statusOf, type Visit } from '../visit.js';

// A page of the list has as many.
const MOST = DEFAULT_PAGE_SIZE;
const AT_A_TIME = 8;

interface Wanted {
  what: 'revoke' | 'reactivate';
  ids: readonly string[];
}

/** @throws {ApiError} for what no form of ours sends. */
function wantedOf({ form }: Visit): Wanted {
  const what = form.get('what');
  if (what !== 'revoke' && what !== 'reactivate') throw refusal('say whether to revoke or to reactivate');
  const ids = [...new Set(form.getAll('id'))];
  if (ids.length === 0) throw refusal('no token is marked: go back and mark some');
  if (ids.length > MOST || !ids.every((id) => WHOLE_ID.test(id)))
    throw refusal(`mark at most ${MOST} tokens of the list`);
  return { what, ids };
}

function ask(visit: Visit, { what, ids }: Wanted, refused: string | null = null): Answer {
  const { title, body } = bulkAskPage({ what, ids, refused, reason: visit.form.get('reason') ?? '' });
  return { title, section: 'tokens', body, ...statusOf(refused) };
}

/** Changes one token, unless it is already as it should be. */
async function changeOne(client: ManagementClient, id: string, isActive: boolean): Promise<BulkResult> {
  let name: string | null = null;
  let isSent = false;
  try {
    const token = await client.token(id);
    name = token.name;
    if (token.is_active === isActive) return { id, name, outcome: 'already' };
    isSent = true;
    await client.updateToken(id, { is_active: isActive });
    return { id, name, outcome: 'changed' };
  } catch (error) {
    const why = error instanceof Error ? error.message : 'no answer';
    // Without an answer, and with one of 500 or above, the change may have been made all the same.
    const isRefused = error instanceof ApiError && error.status < 500;
    const outcome = isSent && !isRefused ? 'unknown' : 'failed';
    return { id, name, outcome, why, isRefusal: error instanceof ApiError && error.status === 400 };
  }
}

async function change(visit: Visit, wanted: Wanted): Promise<Answer> {
  const client = visit.changing();
  const { what, ids } = wanted;
  const results: BulkResult[] = [];
  for (let from = 0; from < ids.length; from += AT_A_TIME) {
    const some = ids.slice(from, from + AT_A_TIME);
    results.push(...(await Promise.all(some.map((id) => changeOne(client, id, what === 'reactivate')))));
  }
  const [first] = results;
  // A reason that is not taken is the same for every one.
  if (first?.isRefusal && results.every(({ outcome, why }) => outcome === 'failed' && why === first.why)) {
    const refused = await refusedBecause(() => Promise.reject(refusal(first.why ?? '')));
    return ask(visit, wanted, refused);
  }
  const { title, body } = bulkDonePage({ what, results });
  return { title, section: 'tokens', body };
}

export const bulkRoutes = [
  post('/tokens/marked', async (visit) => {
    const wanted = wantedOf(visit);
    return visit.form.get('confirmed') === 'yes' ? change(visit, wanted) : ask(visit, wanted);
  }),
];
