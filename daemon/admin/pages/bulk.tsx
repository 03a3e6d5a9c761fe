/**
 * Revokes or reactivates many tokens: those that are selected on a page of the list, or all that match its filter. A confirmation page
 * comes first. The page after it shows the progress while it is sent. There is one change and one audit record per token.
 */
import { counted, exact } from '../../api/formats.js';
import { ApiError, type ManagementClient } from '../../api/client.js';
import type { WireToken } from '../../api/contract.js';
import { DEFAULT_PAGE_SIZE, UUID_PATTERN } from '../../api/vocabulary.js';
import { pagesOf } from '../export.js';
import {
  allProjects,
  invalidRequest,
  type PagePart,
  type PageRequest,
  type PageResponse,
  post,
  sentence,
} from '../page-request.js';
import { boxOf } from '../query-box.js';
import { asField, asOf, fromField, type TokenFilter, tokenFilterOf } from '../token-filter.js';
import { Heading } from '../parts/document.js';
import { Link, PartsOfPage } from '../parts/frame.js';
import { escapeBidi, TokenLink } from '../parts/formats.js';
import { SuccessNotice } from '../parts/common.js';
import { UndoForm } from './batch.js';
import { confirmPage } from './confirm.js';

interface Result {
  id: string;
  name: string | null;
  /** `unknown`: the change was sent, but no response says whether it was made. */
  outcome: 'changed' | 'already' | 'failed' | 'unknown';
  /** Why the change failed or its result is unknown. */
  why?: string;
  /** Whether the management API rejected the request as invalid. */
  isRefusal?: boolean;
}

const WORDS = {
  revoke: {
    verb: 'Revoke',
    past: 'revoked',
    says: 'Clients of these tokens get 401 from the next request on, and requests in flight are ended. You can reactivate the tokens.',
  },
  reactivate: {
    verb: 'Reactivate',
    past: 'reactivated',
    says: 'The tokens are accepted again from the next request on, unless they have expired or reached their cap.',
  },
} as const;

type What = keyof typeof WORDS;

interface FilterTerm {
  name: string;
  value: string;
}

function FilterNotice({ filter }: { filter: readonly FilterTerm[] }) {
  if (filter.length === 0) {
    return (
      <p className="notice">
        <strong>These are all tokens of all projects.</strong>
      </p>
    );
  }
  return (
    <p className="notice">
      All tokens with{' '}
      {filter.map(({ name, value }, index) => (
        <span key={name}>
          {index === 0 ? '' : ', '}
          {name} <strong>{escapeBidi(value)}</strong>
        </span>
      ))}
    </p>
  );
}

/** The page shows the progress while it is sent, and then the summary. */
function progressPage({ what, count }: { what: What; count: number }) {
  const title = `${WORDS[what].verb} ${counted(count, 'token')}`;
  const body = (
    <div className="narrow">
      <Heading title={title} path={<Link to="tokens">Tokens</Link>} />
      <PartsOfPage />
    </div>
  );
  return { title, body };
}

function Progress({ what, done, all }: { what: What; done: number; all: number }) {
  const says = `${exact(done)} of ${exact(all)}`;
  return (
    <div className="progress">
      <progress max={all} value={done} aria-label={`${WORDS[what].verb}: ${says}`} />
      <span>{says}. Keep this page open until it is done.</span>
    </div>
  );
}

// A longer list would not be read. The list of tokens shows the others.
const MAX_LISTED = 50;

/** @param props.batch ID of all changes; null if they have none. */
function Summary({ what, results, batch }: { what: What; results: readonly Result[]; batch: string | null }) {
  const { past } = WORDS[what];
  const of = (outcome: Result['outcome']) => results.filter((result) => result.outcome === outcome);
  const [changed, already, failed, unknown] = [of('changed'), of('already'), of('failed'), of('unknown')];
  return (
    <div className="summary">
      <SuccessNotice what={`${counted(changed.length, 'token')} ${past}.`} />
      {already.length === 0 ? null : (
        <p>{`${counted(already.length, 'token')} ${already.length === 1 ? 'was' : 'were'} already ${past}.`}</p>
      )}
      <NotDone what={`${counted(failed.length, 'token')} not ${past}:`} results={failed} />
      <NotDone
        what={`It is unknown whether ${counted(unknown.length, 'token')} ${unknown.length === 1 ? 'was' : 'were'} ${past}. Check before you try again:`}
        results={unknown}
      />
      <div className="buttons start">
        <Link to="tokens" className="button primary">
          Go to the tokens
        </Link>
        {batch !== null && changed.length + unknown.length > 0 ? <UndoForm batch={batch} /> : null}
      </div>
    </div>
  );
}

/** A list of tokens, with an error message for each. */
function NotDone({ what, results }: { what: string; results: readonly Result[] }) {
  if (results.length === 0) return null;
  return (
    <div className="notice bad" role="alert">
      <p>{what}</p>
      <ul>
        {results.slice(0, MAX_LISTED).map(({ id, name, why }) => (
          <li key={id}>
            <TokenLink token={{ id, name }} /> {escapeBidi(why ?? '')}
          </li>
        ))}
      </ul>
      {results.length > MAX_LISTED ? <p>{`And ${exact(results.length - MAX_LISTED)} more.`}</p> : null}
    </div>
  );
}

// ---- routes

// The size of a page of the list.
const MAX_SELECTED = DEFAULT_PAGE_SIZE;
/** For more, the command line is the better place. */
const MAX_MATCHING = 10_000;
const CONCURRENCY = 8;
const PROGRESS_STEPS = 50;

/** A token to change. The name and the state of a selected token are not known yet. */
type Target = Pick<WireToken, 'id'> & Partial<Pick<WireToken, 'name' | 'is_active'>>;

/** The selected tokens, or those that match a filter. */
type Selection = { ids: readonly string[] } | { filter: TokenFilter; count: number };

interface BulkChange {
  what: What;
  selection: Selection;
}

/** @throws {ApiError} if the form is invalid. */
function idsIn(form: URLSearchParams): readonly string[] {
  const ids = [...new Set(form.getAll('id'))];
  if (ids.length === 0) throw invalidRequest('no tokens selected: go back and select some');
  if (ids.length > MAX_SELECTED || !ids.every((id) => UUID_PATTERN.test(id)))
    throw invalidRequest(`select up to ${MAX_SELECTED} tokens`);
  return ids;
}

function whatIn(form: URLSearchParams): What {
  const what = form.get('what');
  if (what === 'revoke' || what === 'reactivate') return what;
  throw invalidRequest('choose revoke or reactivate');
}

/** From the form of the list. */
async function chosenIn(request: PageRequest): Promise<BulkChange> {
  const { client, form, nowMs } = request;
  const what = whatIn(form);
  if (form.get('all') !== 'yes') return { what, selection: { ids: idsIn(form) } };
  const query = new URLSearchParams(form.get('query') ?? '');
  const box = await boxOf(client, query, 'tokens', await allProjects(client));
  const filter = asOf(tokenFilterOf(query, box), nowMs);
  const { total } = await client.tokens({ ...filter, limit: '1' });
  const count = total ?? 0;
  if (count === 0) throw invalidRequest('no tokens match this filter any more');
  if (count > MAX_MATCHING) throw invalidRequest(tooMany(count));
  return { what, selection: { filter, count } };
}

const tooMany = (count: number) =>
  `${counted(count, 'token')} match this filter, and up to ${exact(MAX_MATCHING)} can be changed here: filter for fewer`;

/** From the confirmation page. */
function confirmedIn({ form }: PageRequest): BulkChange {
  const what = whatIn(form);
  const filter = form.get('filter');
  if (filter === null) return { what, selection: { ids: idsIn(form) } };
  const count = Number(form.get('count'));
  if (!(count >= 0 && count <= MAX_MATCHING))
    throw invalidRequest(`count must be a number up to ${exact(MAX_MATCHING)}`);
  return { what, selection: { filter: fromField(filter), count } };
}

const TERMS: Readonly<Record<string, string>> = {
  q: 'name or ID',
  words: 'words',
  project_id: 'project',
  state: 'state',
  used_over: 'use over (%)',
  used_under: 'use under (%)',
  expires_after: 'expiry after',
  expires_before: 'expiry before',
  created_after: 'creation after',
  created_before: 'creation before',
  idle_over: 'no use for',
  errors_over: 'failures over',
  model: 'model',
};

/** The filter in the words of the form, and with the names of projects. */
async function termsOf(client: ManagementClient, filter: TokenFilter): Promise<FilterTerm[]> {
  const projects = filter.project_id === undefined ? [] : await allProjects(client);
  const named = (ids: string) => projects.reduce((text, { id, name }) => text.replace(id, () => name), ids);
  return Object.entries(filter).map(([name, value]) => ({
    name: TERMS[name] ?? name,
    value: name === 'project_id' ? named(value) : value,
  }));
}

async function ask(
  request: PageRequest,
  { what, selection }: BulkChange,
  refused: string | null = null,
): Promise<PageResponse> {
  const { verb, says } = WORDS[what];
  const { count, notice, fields } =
    'ids' in selection
      ? { count: selection.ids.length, notice: null, fields: selection.ids.map((id) => ['id', id] as const) }
      : {
          count: selection.count,
          notice: <FilterNotice filter={await termsOf(request.client, selection.filter)} />,
          fields: [['filter', asField(selection.filter)] as const, ['count', String(selection.count)] as const],
        };
  return confirmPage(request, {
    title: `${verb} ${counted(count, 'token')}?`,
    section: 'tokens',
    notice,
    message: says,
    to: 'tokens/marked',
    back: 'tokens',
    verb,
    isDangerous: what === 'revoke',
    fields: [['what', what], ['confirmed', 'yes'], ...fields],
    refused,
  });
}

/** The tokens that match, up to one more than can be changed. All of them are loaded first, because a change can move them out of the filter. */
async function matching(client: ManagementClient, filter: TokenFilter): Promise<Target[]> {
  const found: Target[] = [];
  for await (const tokens of pagesOf((paging) => client.tokens({ ...filter, ...paging }))) {
    found.push(...tokens.map(({ id, name, is_active }) => ({ id, name, is_active })));
    if (found.length > MAX_MATCHING) break;
  }
  return found;
}

/** Changes one token, unless it already has the desired state. */
async function changeOne(client: ManagementClient, target: Target, isActive: boolean): Promise<Result> {
  const { id } = target;
  let name = target.name ?? null;
  let isSent = false;
  try {
    const token = target.is_active === undefined ? await client.token(id) : target;
    name = token.name ?? null;
    if (token.is_active === isActive) return { id, name, outcome: 'already' };
    isSent = true;
    await (isActive ? client.updateToken(id, { is_active: true }) : client.revokeToken(id));
    return { id, name, outcome: 'changed' };
  } catch (error) {
    const why = error instanceof Error ? error.message : 'no response';
    // Without a response, or with a status of 500 or above, the change may still have been made.
    const isRefused = error instanceof ApiError && error.status < 500;
    const outcome = isSent && !isRefused ? 'unknown' : 'failed';
    return { id, name, outcome, why, isRefusal: error instanceof ApiError && error.status === 400 };
  }
}

/** Yields the progress, and then the summary. If the browser goes, nothing more is changed. */
async function* changeAll(
  client: ManagementClient,
  what: What,
  targets: readonly Target[],
  results: Result[],
): AsyncGenerator<PagePart> {
  const piece = Math.max(CONCURRENCY, Math.ceil(targets.length / PROGRESS_STEPS));
  let unshown = 0;
  while (results.length < targets.length) {
    const some = targets.slice(results.length, results.length + CONCURRENCY);
    results.push(...(await Promise.all(some.map((target) => changeOne(client, target, what === 'reactivate')))));
    unshown += some.length;
    if (unshown < piece) continue;
    unshown = 0;
    yield <Progress what={what} done={results.length} all={targets.length} />;
  }
  yield <Summary what={what} results={results} batch={client.batch ?? null} />;
}

async function change(request: PageRequest, wanted: BulkChange): Promise<PageResponse> {
  const client = request.changeClient;
  const { what, selection } = wanted;
  const targets =
    'ids' in selection ? selection.ids.map((id) => ({ id })) : await matching(request.client, selection.filter);
  // More than were confirmed: other tokens match now.
  if ('filter' in selection && targets.length > selection.count) {
    const count = targets.length;
    if (count > MAX_MATCHING) throw invalidRequest(tooMany(count));
    const refused = `The filter now matches ${counted(count, 'token')}, not ${exact(selection.count)}. Nothing was changed.`;
    return ask(request, { what, selection: { ...selection, count } }, refused);
  }
  // The first one shows whether the management API accepts the form. After that the page is sent, with status 200.
  const [first, ...rest] = targets;
  const results = first ? [await changeOne(client, first, what === 'reactivate')] : [];
  if (results[0]?.isRefusal) {
    return ask(request, wanted, sentence(results[0].why ?? ''));
  }
  const { title, body } = progressPage({ what, count: rest.length + results.length });
  return { title, section: 'tokens', body, rest: changeAll(client, what, targets, results) };
}

export const bulkRoutes = [
  post('/tokens/marked', 'revoke tokens', async (request) =>
    request.form.get('confirmed') === 'yes'
      ? change(request, confirmedIn(request))
      : ask(request, await chosenIn(request)),
  ),
];
