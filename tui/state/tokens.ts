/** The list of tokens: what it asks for, what answers make of it, and its cursor, marks, filter and order. */
import type { Page } from '../../daemon/api/client.js';
import type { TokenQuery, WireToken } from '../../daemon/api/contract.js';
import { mayAsk } from './connection.js';
import type { Question } from './exchange.js';
import { parseFilter } from './filter.js';
import { listRows } from './rows.js';
import { saying, type State, type Step, TOKEN_ORDERS, type TokensState, whyBusy } from './state.js';
import * as windows from './window.js';

/** The tokens by a filter: what is known of them holds whatever their order. */
const windowOf = (filter: string, order: string) => windows.emptyWindow<WireToken>(`tokens ${order} ${filter}`, true);

const FIRST = { filter: '', order: 'live', isDescending: false } as const;

export const NO_TOKENS: TokensState = {
  ...FIRST,
  window: windowOf(FIRST.filter, FIRST.order),
  marks: new Map(),
  all: null,
  rangeFrom: null,
  collecting: null,
  counted: new Map(),
};

/** How many tokens' counts are remembered for their requests per minute. */
const COUNTED_MOST = 2_000;

/** The filter as the API understands it, without order. @returns null for one that it does not. */
export function filterQuery({ projects, tokens }: State, filter = tokens.filter): TokenQuery | null {
  const { query, isComplete } = parseFilter(filter, 'tokens', { projects: projects.all ?? [] });
  return isComplete ? query : null;
}

/** @param end the rows from the tail are the first of the reverse order. */
function pageQuery({ tokens }: State, query: TokenQuery, { end, cursor }: windows.PageWanted): TokenQuery {
  const { order, isDescending } = tokens;
  const isReverse = isDescending !== (end === 'tail');
  return {
    ...query,
    sort: isReverse ? `-${order}` : order,
    limit: String(windows.PAGE_ROWS),
    ...(cursor !== null && { cursor }),
  };
}

/** With what the list asks for to show what it is to show. */
export function asked(state: State): Step {
  const { window } = state.tokens;
  const query = filterQuery(state);
  if (!query || !mayAsk(state)) return [state];
  const pages = windows.needed(window, listRows(state));
  if (pages.length === 0) return [state];
  const questions = pages.map((page): Question => ({ of: 'tokens', query: pageQuery(state, query, page), page }));
  const next = { ...state, tokens: { ...state.tokens, window: windows.asked(window, pages) } };
  return [next, ...questions.map((question) => ({ do: 'ask', question }) as const)];
}

/** What is shown is asked for anew. */
export const refreshed = (state: State): Step =>
  asked({ ...state, tokens: { ...state.tokens, window: windows.aged(state.tokens.window) } });

/** A daemon of before this order refuses it: then by expiry alone, the dead among the living. */
export function orderRefused(state: State): Step | null {
  if (state.tokens.order !== 'live') return null;
  const [next, ...effects] = anew(state, { order: 'expires_at' });
  return [saying(next, 'This daemon is older and cannot put the live tokens first'), ...effects];
}

/** No answer came; what did not come is asked for at the next refresh. */
export const failed = (state: State, page: windows.PageWanted): State => ({
  ...state,
  tokens: { ...state.tokens, window: windows.failed(state.tokens.window, page) },
});

export function answered(state: State, wanted: windows.PageWanted, page: Page<WireToken>): Step {
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
    counted: withCounts(tokens.counted, page.items, state.nowMs),
  };
  return asked({ ...state, tokens: next });
}

function withCounts(
  counted: TokensState['counted'],
  items: readonly WireToken[],
  atMs: number,
): TokensState['counted'] {
  const next = new Map(counted);
  for (const { id, request_count: count } of items) {
    const before = next.get(id);
    // A rate is of the last minute or two.
    if (!before || atMs - before.atMs > 120_000 || count < before.count) next.set(id, { atMs, count });
  }
  return next.size > COUNTED_MOST ? new Map([...next].slice(-COUNTED_MOST)) : next;
}

export const underCursor = ({ tokens }: State): WireToken | undefined => windows.cursorRow(tokens.window);

export function movedBy(state: State, by: number): Step {
  const window = windows.move(state.tokens.window, by, listRows(state));
  return asked({ ...state, tokens: { ...state.tokens, window } });
}

export function movedTo(state: State, where: 'first' | 'last'): Step {
  const window = windows.moveTo(state.tokens.window, where, listRows(state));
  return asked({ ...state, tokens: { ...state.tokens, window } });
}

/** The marked ones, or the one under the cursor. */
export function meant(state: State): readonly WireToken[] {
  const { marks } = state.tokens;
  if (marks.size > 0) return [...marks.values()];
  const token = underCursor(state);
  return token ? [token] : [];
}

/** Another list: another filter, another order. */
export function listed({ tokens, ...state }: State, change: Partial<TokensState>): State {
  const next = { ...tokens, ...change, rangeFrom: null };
  const order = `${next.isDescending ? '-' : ''}${next.order}`;
  return { ...state, tokens: { ...next, window: windowOf(next.filter, order) } };
}

/** Another list, and asks for it. */
export const anew = (state: State, change: Partial<TokensState>): Step => asked(listed(state, change));

export function ordered(state: State): Step {
  const { tokens } = state;
  const at = TOKEN_ORDERS.findIndex((one) => one === tokens.order || (one === 'live' && tokens.order === 'expires_at'));
  const order = TOKEN_ORDERS[(at + 1) % TOKEN_ORDERS.length] ?? 'live';
  // What is looked for first: what dies next, what is newest, what was used last or most.
  const isDescending = order !== 'live' && order !== 'name';
  return anew(state, { order, isDescending });
}

export const reversed = (state: State): Step => anew(state, { isDescending: !state.tokens.isDescending });

export function marked(state: State): Step {
  const token = underCursor(state);
  if (!token) return [state];
  const marks = new Map(state.tokens.marks);
  if (!marks.delete(token.id)) marks.set(token.id, token);
  return [{ ...state, tokens: { ...state.tokens, marks } }];
}

/** The first time it begins a range, the second time it marks all of it, from there to the cursor. */
export function rangeMarked(state: State): Step {
  const { tokens } = state;
  const { window, rangeFrom } = tokens;
  if (rangeFrom === null) {
    const next = { ...state, tokens: { ...tokens, rangeFrom: window.cursorIndex } };
    return [saying(next, 'Marking from here: move, and v again; esc gives it up')];
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
    unknown > 0
      ? saying(next, `${unknown} of them were not read yet and are not marked; use a filter and ^a`, 'bad')
      : next,
  ];
}

/** Asks for every token of the filter; they are marked when they come. */
export function everyTokenAsked(state: State, collecting: 'marks' | 'inverse'): Step {
  const query = filterQuery(state);
  if (!query) return [saying(state, 'The filter does not hold', 'bad')];
  const next = { ...state, tokens: { ...state.tokens, collecting, rangeFrom: null } };
  return [next, { do: 'ask', question: { of: 'everyToken', query, as: collecting } }];
}

/** Why they cannot be asked for now. */
export function whyNotEvery(state: State): string | null {
  const busy = whyBusy(state);
  if (busy !== null) return busy;
  if (!mayAsk(state)) return 'the management token was refused, not asked';
  const { window } = state.tokens;
  return windows.isHeardOf(window) && windows.lengthOf(window) === 0 ? 'There is no token here' : null;
}

/** Marks that the filter does not let through stay as they are. */
export function everyTokenCame(state: State, all: readonly WireToken[]): State {
  const { collecting, window } = state.tokens;
  // It was stopped.
  if (collecting === null) return state;
  const marks = new Map(state.tokens.marks);
  for (const token of all) {
    if (collecting === 'marks' || !marks.delete(token.id)) marks.set(token.id, token);
  }
  const next = { ...state, progress: null, tokens: { ...state.tokens, marks, collecting: null } };
  const words = `${marks.size.toLocaleString('en')} marked`;
  const total = window.total ?? 0;
  // What is read at once has a bound, a round one.
  const isCut = all.length > 0 && all.length < total && all.length % 1_000 === 0;
  return isCut
    ? saying(next, `${words}; of ${total.toLocaleString('en')} no more are read at once`, 'bad')
    : saying(next, words);
}

export const unmarked = (state: State): State => ({
  ...state,
  tokens: { ...state.tokens, marks: new Map(), rangeFrom: null },
});

/** A token as people call it, if it came by; null where it has no name, or nobody knows. */
export function tokenName({ tokens: { window, marks }, token, overview }: State, id: string): string | null {
  const isIt = (it: WireToken | null | undefined) => it?.id === id;
  const pages = [...window.head.pages, ...window.tail.pages];
  const known = marks.get(id) ?? (isIt(token?.token) ? token?.token : undefined) ?? overview.dying.find(isIt);
  return (known ?? pages.flatMap(({ rows }) => rows?.find(isIt) ?? [])[0])?.name ?? null;
}
