/** The detail of one token: its requests and their data. */
import { TOKEN_LINES } from '../../console/views.js';
import type { WireEvent, WireToken, WireUsageLine } from '../../daemon/api/contract.js';
import type { Effect, DataRequest, TokenHistory } from './exchange.js';
import { opened } from './navigation.js';
import { listRows } from './rows.js';
import { daemonNow, type State, type Transition, type TokenDetail, view } from './state.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** Hours in the chart. */
const HOURS_SHOWN = 24;
/** Start of the last 24 hours, rounded to a full hour so that the URL, and with it the ETag, stays the same for an hour. */
export const dayBefore = (state: State) =>
  new Date(Math.floor(daemonNow(state) / HOUR_MS) * HOUR_MS - (HOURS_SHOWN - 1) * HOUR_MS).toISOString();

/** Maximum number of requests of the last minute that are stored. */
const MAX_RECENT_REQUESTS = 6_000;

const emptyDetail = (token: WireToken | null): TokenDetail => ({
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

/** Opens the detail. @param known the token as far as loaded, to show at once. */
export function open(state: State, id: string, known: WireToken | null): Transition {
  const next = { ...opened(state, { screen: 'token', id }), token: emptyDetail(known) };
  return [next, ...dataRequests(next, id).map((request): Effect => ({ do: 'load', request }))];
}

export function dataRequests(state: State, id: string): DataRequest[] {
  return [
    { of: 'token', id },
    { of: 'usage', query: { by: 'hour', token_id: id, since: dayBefore(state) } },
    { of: 'tokenAudit', id },
  ];
}

const withToken = (state: State, change: Partial<TokenDetail>): State =>
  state.token ? { ...state, token: { ...state.token, ...change } } : state;

export const loaded = (state: State, token: WireToken): State =>
  isShown(state, token.id) ? withToken(state, { token, isGone: false }) : state;
export const gone = (state: State, id: string): State =>
  isShown(state, id) ? withToken(state, { isGone: true }) : state;
export const usageReceived = (state: State, id: string | undefined, usage: readonly WireUsageLine[]): State =>
  id !== undefined && isShown(state, id) ? withToken(state, { usage }) : state;
export const historyReceived = (state: State, id: string, history: TokenHistory): State =>
  isShown(state, id) ? withToken(state, { history }) : state;

/** Records a completed request of the token. */
export function used(state: State, event: WireEvent): State {
  const { token } = state;
  if (!token || event.kind !== 'request.completed' || event.token_id !== token.token?.id) return state;
  const requestsMs = [...token.requestsMs, state.nowMs].slice(-MAX_RECENT_REQUESTS);
  return withToken(state, { requestsMs });
}

/** Completion times of the requests in the last minute. */
export const lastMinuteRequests = ({ token, nowMs }: State): readonly number[] =>
  (token?.requestsMs ?? []).filter((atMs) => nowMs - atMs < MINUTE_MS);

// Counters, the chart, blank lines, titles and the command.
const OTHER_LINES = 18;
/** Lines of the screen above the history, which has at least one line. */
export const LINES_ABOVE_HISTORY = TOKEN_LINES.length + OTHER_LINES;

/** One row for all use, one per change, and one that says where to find more. */
export function historyRows({ lastUse, changes, isTruncated }: TokenHistory): number {
  return (lastUse === null ? 0 : 1) + changes.length + (isTruncated ? 1 : 0);
}

const lastTop = (state: State) =>
  // Without column titles there is room for one more line.
  Math.max(0, LINES_ABOVE_HISTORY + Math.max(1, rowsOf(state.token)) - (listRows(state) + 1));

const rowsOf = (token: TokenDetail | null) => (token?.history ? historyRows(token.history) : 0);

export const scrolled = (state: State, by: number): State =>
  withToken(state, { top: Math.max(0, Math.min(lastTop(state), (state.token?.top ?? 0) + by)) });
