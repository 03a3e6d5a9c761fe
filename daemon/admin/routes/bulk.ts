/** Revokes or reactivates all selected tokens: a confirmation page, then one change and one audit record per token. */
import { ApiError, type ManagementClient } from '../../api/client.js';
import { DEFAULT_PAGE_SIZE, UUID_PATTERN } from '../../api/vocabulary.js';
import { bulkAskPage, bulkDonePage, type BulkResult } from '../pages/bulk.js';
import { type PageResponse, post, invalidRequest, refusalOf, statusOf, type PageRequest } from '../page-request.js';

// The size of a page of the list.
const MAX_TOKENS = DEFAULT_PAGE_SIZE;
const CONCURRENCY = 8;

interface BulkChange {
  what: 'revoke' | 'reactivate';
  ids: readonly string[];
}

/** @throws {ApiError} if the form is invalid. */
function bulkChangeOf({ form }: PageRequest): BulkChange {
  const what = form.get('what');
  if (what !== 'revoke' && what !== 'reactivate') throw invalidRequest('choose revoke or reactivate');
  const ids = [...new Set(form.getAll('id'))];
  if (ids.length === 0) throw invalidRequest('no tokens selected: go back and select some');
  if (ids.length > MAX_TOKENS || !ids.every((id) => UUID_PATTERN.test(id)))
    throw invalidRequest(`select up to ${MAX_TOKENS} tokens`);
  return { what, ids };
}

function ask(request: PageRequest, { what, ids }: BulkChange, refused: string | null = null): PageResponse {
  const { title, body } = bulkAskPage({ what, ids, refused, reason: request.form.get('reason') ?? '' });
  return { title, section: 'tokens', body, ...statusOf(refused) };
}

/** Changes one token, unless it already has the desired state. */
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
    const why = error instanceof Error ? error.message : 'no response';
    // Without a response, or with a status of 500 or above, the change may still have been made.
    const isRefused = error instanceof ApiError && error.status < 500;
    const outcome = isSent && !isRefused ? 'unknown' : 'failed';
    return { id, name, outcome, why, isRefusal: error instanceof ApiError && error.status === 400 };
  }
}

async function change(request: PageRequest, wanted: BulkChange): Promise<PageResponse> {
  const client = request.changeClient();
  const { what, ids } = wanted;
  const results: BulkResult[] = [];
  for (let from = 0; from < ids.length; from += CONCURRENCY) {
    const some = ids.slice(from, from + CONCURRENCY);
    results.push(...(await Promise.all(some.map((id) => changeOne(client, id, what === 'reactivate')))));
  }
  const [first] = results;
  // An invalid reason fails for all tokens alike: show the form again.
  if (first?.isRefusal && results.every(({ outcome, why }) => outcome === 'failed' && why === first.why)) {
    const refused = await refusalOf(() => Promise.reject(invalidRequest(first.why ?? '')));
    return ask(request, wanted, refused);
  }
  const { title, body } = bulkDonePage({ what, results });
  return { title, section: 'tokens', body };
}

export const bulkRoutes = [
  post('/tokens/marked', async (request) => {
    const wanted = bulkChangeOf(request);
    return request.form.get('confirmed') === 'yes' ? change(request, wanted) : ask(request, wanted);
  }),
];
