/** The list of tokens: its requests and responses, cursor, marks, filter and order. */
import type { Page } from '../../daemon/api/client.js';
import type { TokenQuery, WireToken } from '../../daemon/api/contract.js';
import { mayRequest, whyDenied } from './connection.js';
import type { DataRequest } from './exchange.js';
import { parseFilter } from '../../console/query/filter.js';
import { listRows } from './rows.js';
import {
  knownNames,
  loads,
  withMessage,
  type State,
  type Transition,
  TOKEN_ORDERS,
  type TokensState,
  whyBusy,
} from './state.js';
import * as windows from './window.js';

/** The window for a filter and an order. */
const windowOf = (filter: string, order: string) => windows.emptyWindow<WireToken>(`tokens ${order} ${filter}`);

const FIRST = { filter: '', order: 'live', isDescending: false } as const;

export const NO_TOKENS: TokensState = {
  ...FIRST,
  window: windowOf(FIRST.filter, FIRST.order),
  marks: new Map(),
  all: null,
  rangeFrom: null,
  collecting: null,
  rateBaselines: new Map(),
};

/** Number of tokens whose earlier count is stored for the requests per minute. */
const MAX_RATE_BASELINES = 2_000;

/** The filter as a query for the API, without the order. @returns null for an invalid filter. */
export function filterQuery(state: State): TokenQuery | null {
  const { query, isComplete } = parseFilter(state.tokens.filter, 'tokens', knownNames(state));
  return isComplete ? query : null;
}

/** The query for one page. The first rows from the tail are the first ones in reverse order. */
function pageQuery({ tokens }: State, query: TokenQuery, { end, cursor }: windows.PageRequest): TokenQuery {
  const { order, isDescending } = tokens;
  const isReverse = isDescending !== (end === 'tail');
  return {
    ...query,
    sort: isReverse ? `-${order}` : order,
    limit: String(windows.PAGE_ROWS),
    ...(cursor !== null && { cursor }),
  };
}

/** Requests the pages that the view needs. */
function requestPages(state: State): Transition {
  const { window } = state.tokens;
  const query = filterQuery(state);
  if (!query || !mayRequest(state)) return [state];
  const pages = windows.pagesToRequest(window, listRows(state));
  if (pages.length === 0) return [state];
  const dataRequests = pages.map((page): DataRequest => ({ of: 'tokens', query: pageQuery(state, query, page), page }));
  const next = { ...state, tokens: { ...state.tokens, window: windows.withPending(window, pages) } };
  return [next, ...loads(dataRequests)];
}

/** Requests the visible pages again. */
export const refreshed = (state: State): Transition =>
  requestPages({ ...state, tokens: { ...state.tokens, window: windows.invalidated(state.tokens.window) } });

/** The page is requested again at the next refresh. */
export const failed = (state: State, page: windows.PageRequest): State => ({
  ...state,
  tokens: { ...state.tokens, window: windows.failed(state.tokens.window, page) },
});

export function loaded(state: State, wanted: windows.PageRequest, page: Page<WireToken>): Transition {
  const { tokens } = state;
  const window = windows.received(tokens.window, wanted, page, listRows(state));
  const isFiltered = tokens.filter.trim() !== '';
  const marks = new Map(tokens.marks);
  for (const token of page.items) if (marks.has(token.id)) marks.set(token.id, token);
  const next: TokensState = {
    ...tokens,
    window,
    marks,
    all: isFiltered ? tokens.all : (page.total ?? tokens.all),
    rateBaselines: withRateBaselines(tokens.rateBaselines, page.items, state.nowMs),
  };
  return requestPages({ ...state, tokens: next });
}

function withRateBaselines(
  counted: TokensState['rateBaselines'],
  items: readonly WireToken[],
  atMs: number,
): TokensState['rateBaselines'] {
  const next = new Map(counted);
  for (const { id, request_count: count } of items) {
    const before = next.get(id);
    // The rate covers the last one to two minutes.
    if (!before || atMs - before.atMs > 120_000 || count < before.count) next.set(id, { atMs, count });
  }
  return next.size > MAX_RATE_BASELINES ? new Map([...next].slice(-MAX_RATE_BASELINES)) : next;
}

export const underCursor = ({ tokens }: State): WireToken | undefined => windows.cursorRow(tokens.window);

export function movedBy(state: State, by: number): Transition {
  const window = windows.move(state.tokens.window, by, listRows(state));
  return requestPages({ ...state, tokens: { ...state.tokens, window } });
}

export function movedTo(state: State, where: 'first' | 'last'): Transition {
  const window = windows.moveTo(state.tokens.window, where, listRows(state));
  return requestPages({ ...state, tokens: { ...state.tokens, window } });
}

/** The marked tokens, or else the one under the cursor. */
export function selectedTokens(state: State): readonly WireToken[] {
  const { marks } = state.tokens;
  if (marks.size > 0) return [...marks.values()];
  const token = underCursor(state);
  return token ? [token] : [];
}

/** Starts a new list for another filter or order. */
export function withNewList({ tokens, ...state }: State, change: Partial<TokensState>): State {
  const next = { ...tokens, ...change, rangeFrom: null };
  const order = `${next.isDescending ? '-' : ''}${next.order}`;
  return { ...state, tokens: { ...next, window: windowOf(next.filter, order) } };
}

/** Starts a new list and requests it. */
export const reloaded = (state: State, change: Partial<TokensState>): Transition =>
  requestPages(withNewList(state, change));

export function ordered(state: State): Transition {
  const { tokens } = state;
  const at = TOKEN_ORDERS.indexOf(tokens.order);
  const order = TOKEN_ORDERS[(at + 1) % TOKEN_ORDERS.length] ?? 'live';
  // The most useful direction: expiring next, newest, last used or most used first.
  const isDescending = order !== 'live' && order !== 'name' && order !== 'expires_at';
  return reloaded(state, { order, isDescending });
}

export const reversed = (state: State): Transition => reloaded(state, { isDescending: !state.tokens.isDescending });

export function marked(state: State): Transition {
  const token = underCursor(state);
  if (!token) return [state];
  const marks = new Map(state.tokens.marks);
  if (!marks.delete(token.id)) marks.set(token.id, token);
  return [{ ...state, tokens: { ...state.tokens, marks } }];
}

/** The first call starts a range, the second one marks all tokens from there to the cursor. */
export function rangeMarked(state: State): Transition {
  const { tokens } = state;
  const { window, rangeFrom } = tokens;
  if (rangeFrom === null) {
    const next = { ...state, tokens: { ...tokens, rangeFrom: window.cursorIndex } };
    return [withMessage(next, 'Range started: move to its end and press the same key; esc cancels')];
  }
  const [from, to] = [Math.min(rangeFrom, window.cursorIndex), Math.max(rangeFrom, window.cursorIndex)];
  const marks = new Map(tokens.marks);
  let unknown = 0;
  for (let index = from; index <= to; index++) {
    const token = windows.rowAt(window, index);
    if (token) marks.set(token.id, token);
    else unknown++;
  }
  const next = { ...state, tokens: { ...tokens, marks, rangeFrom: null } };
  return [
    unknown > 0 ? withMessage(next, `${unknown} not loaded and not marked; filter the list and mark all`, 'bad') : next,
  ];
}

/** Requests all tokens of the filter, to be marked when they arrive. */
export function requestAllTokens(state: State, collecting: 'marks' | 'inverse'): Transition {
  const query = filterQuery(state);
  if (!query) return [withMessage(state, 'The filter is not valid', 'bad')];
  const next = { ...state, tokens: { ...state.tokens, collecting, rangeFrom: null } };
  return [next, { do: 'load', request: { of: 'allTokens', query, as: collecting } }];
}

/** Why all tokens cannot be marked now; null: they can. */
export function whyNotMarkAll(state: State): string | null {
  const busy = whyBusy(state);
  if (busy !== null) return busy;
  if (!mayRequest(state)) return whyDenied(state);
  const { window } = state.tokens;
  return windows.isLoaded(window) && windows.lengthOf(window) === 0 ? 'No token here' : null;
}

/** Marks the loaded tokens or inverts their marks. Marks of other tokens do not change. */
export function allTokensReceived(state: State, all: readonly WireToken[]): State {
  const { collecting, window } = state.tokens;
  // The operator stopped it.
  if (collecting === null) return state;
  const marks = new Map(state.tokens.marks);
  for (const token of all) {
    if (collecting === 'marks' || !marks.delete(token.id)) marks.set(token.id, token);
  }
  const next = { ...state, progress: null, tokens: { ...state.tokens, marks, collecting: null } };
  const words = `${marks.size.toLocaleString('en')} marked`;
  const total = window.total ?? 0;
  // Loading stops at a limit, which is a multiple of 1,000.
  const isCut = all.length > 0 && all.length < total && all.length % 1_000 === 0;
  return isCut
    ? withMessage(next, `${words}, the maximum; the filter matches ${total.toLocaleString('en')}`, 'bad')
    : withMessage(next, words);
}

/** All tokens in memory that are in the list. */
export const loadedTokens = ({ tokens }: State): readonly WireToken[] => windows.loadedRows(tokens.window);

export const unmarked = (state: State): State => ({
  ...state,
  tokens: { ...state.tokens, marks: new Map(), rangeFrom: null },
});

/** The name of a token; null if it has none, or if the token is not loaded anywhere. */
export function tokenName({ tokens: { window, marks }, token, overview }: State, id: string): string | null {
  const isIt = (it: WireToken | null | undefined) => it?.id === id;
  const pages = [...window.head.pages, ...window.tail.pages];
  const known = marks.get(id) ?? (isIt(token?.token) ? token?.token : undefined) ?? overview.expiring.find(isIt);
  return (known ?? pages.flatMap(({ rows }) => rows?.find(isIt) ?? [])[0])?.name ?? null;
}
