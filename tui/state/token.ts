/** One token looked at closely: what is asked, and what came. */
import { TOKEN_LINES } from '../../console/views.js';
import type { WireEvent, WireToken, WireUsageLine } from '../../daemon/api/contract.js';
import type { Effect, Question, TokenHistory } from './exchange.js';
import { opened } from './navigation.js';
import { listRows } from './rows.js';
import { daemonNow, type State, type Step, type TokenState, view } from './state.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** What is shown by the hour. */
const HOURS_SHOWN = 24;
/** The beginning of the last day, from a whole hour on: the question stays the same for a while, and its answer with it. */
export const dayBefore = (state: State) =>
  new Date(Math.floor(daemonNow(state) / HOUR_MS) * HOUR_MS - (HOURS_SHOWN - 1) * HOUR_MS).toISOString();

/** Requests of the last minute that are remembered one by one. */
const MOST_REQUESTS = 6_000;

const nothingKnown = (token: WireToken | null): TokenState => ({
  token,
  isGone: false,
  usage: null,
  history: null,
  requestsMs: [],
  top: 0,
});

export const isShown = (state: State, id: string) => {
  const shown = view(state);
  return shown.screen === 'token' && shown.id === id;
};

/** @param known what of it is known already, so that something is to be seen at once. */
export function open(state: State, id: string, known: WireToken | null): Step {
  const next = { ...opened(state, { screen: 'token', id }), token: nothingKnown(known) };
  return [next, ...questions(next, id).map((question): Effect => ({ do: 'ask', question }))];
}

export function questions(state: State, id: string): Question[] {
  return [
    { of: 'token', id },
    { of: 'usage', query: { by: 'hour', token_id: id, since: dayBefore(state) } },
    { of: 'tokenAudit', id },
  ];
}

const withToken = (state: State, change: Partial<TokenState>): State =>
  state.token ? { ...state, token: { ...state.token, ...change } } : state;

export const answered = (state: State, token: WireToken): State =>
  isShown(state, token.id) ? withToken(state, { token, isGone: false }) : state;
export const gone = (state: State, id: string): State =>
  isShown(state, id) ? withToken(state, { isGone: true }) : state;
export const usageCame = (state: State, id: string | undefined, usage: readonly WireUsageLine[]): State =>
  id !== undefined && isShown(state, id) ? withToken(state, { usage }) : state;
export const auditCame = (state: State, id: string, history: TokenHistory): State =>
  isShown(state, id) ? withToken(state, { history }) : state;

/** A request of it is over. */
export function used(state: State, event: WireEvent): State {
  const { token } = state;
  if (!token || event.kind !== 'request.completed' || event.token_id !== token.token?.id) return state;
  const requestsMs = [...token.requestsMs, state.nowMs].slice(-MOST_REQUESTS);
  return withToken(state, { requestsMs });
}

/** Those of the last minute. */
export const lately = ({ token, nowMs }: State): readonly number[] =>
  (token?.requestsMs ?? []).filter((atMs) => nowMs - atMs < MINUTE_MS);

// What is counted of it, its last day, blank lines, titles and the command.
const OTHER_LINES = 18;
/** The lines of the screen above its history; there is at least one for that. */
export const LINES_ABOVE_HISTORY = TOKEN_LINES.length + OTHER_LINES;

/** One for all of its use, one for each change, and one that says where there are more. */
export function historyRows({ lastUse, changes, isCut }: TokenHistory): number {
  return (lastUse === null ? 0 : 1) + changes.length + (isCut ? 1 : 0);
}

const lastTop = (state: State) =>
  // There are no titles of columns, so there is room for one more.
  Math.max(0, LINES_ABOVE_HISTORY + Math.max(1, rowsOf(state.token)) - (listRows(state) + 1));

const rowsOf = (token: TokenState | null) => (token?.history ? historyRows(token.history) : 0);

export const scrolled = (state: State, by: number): State =>
  withToken(state, { top: Math.max(0, Math.min(lastTop(state), (state.token?.top ?? 0) + by)) });
