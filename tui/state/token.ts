/** The detail of one token: its requests and their data. */
import { TOKEN_LINES } from '../../console/columns/tokens.js';
import type { WireEvent, WireToken, WireUsageLine } from '../../daemon/api/contract.js';
import { REQUEST_EVENT_KIND } from '../../daemon/api/vocabulary.js';
import type { DataRequest, Stream, TokenHistory } from './exchange.js';
import { opened } from './navigation.js';
import { detailColumns, recordRows } from './record-rows.js';
import { isLow, listRows } from './rows.js';
import { daemonNow, type State, type Transition, type TokenDetail, view, loads } from './state.js';

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
  requests: new Map(),
  isFollowed: false,
  top: 0,
});

export const isShown = (state: State, id: string) => {
  const shown = view(state);
  return shown.screen === 'token' && shown.id === id;
};

/** Opens the detail. @param known the token as far as loaded, to show at once. */
export function open(state: State, id: string, known: WireToken | null): Transition {
  const next = { ...opened(state, { screen: 'token', id }), token: emptyDetail(known) };
  return [next, ...loads(dataRequests(next, id))];
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

/** The stream begins with the stored events of the last minute. */
export const streams = (id: string): Stream[] => [{ of: 'tokenEvents', id, since: '1m' }];

export const streamChanged = (state: State, is: 'open' | 'lost'): State =>
  withToken(state, { isFollowed: is === 'open' });

/** Records completed requests of the token. A stream that is opened again repeats some of them. */
export function used(state: State, events: readonly WireEvent[]): State {
  const { token } = state;
  if (!token) return state;
  const own = events.filter(({ kind, token_id: id }) => kind === REQUEST_EVENT_KIND && id && isShown(state, id));
  const all = new Map([...token.requests, ...own.map(({ id, time }) => [id, Date.parse(time)] as const)]);
  const recent = [...all].filter(([, atMs]) => isInLastMinute(state, atMs)).slice(-MAX_RECENT_REQUESTS);
  return withToken(state, { requests: new Map(recent) });
}

const isInLastMinute = (state: State, atMs: number) => daemonNow(state) - atMs < MINUTE_MS;

/** How long ago the requests in the last minute were completed, in ms. */
export const lastMinuteRequests = (state: State): readonly number[] =>
  [...(state.token?.requests.values() ?? [])]
    .filter((atMs) => isInLastMinute(state, atMs))
    // The clocks are compared to the second, so that a request may seem to be in the future.
    .map((atMs) => Math.max(0, daemonNow(state) - atMs));

/** The facts of a token that have a line of their own: the secret is shown with the ID. */
export const TOKEN_FACTS = TOKEN_LINES.filter(({ id }) => id !== 'secret');

// Counters, the budget, the chart, blank lines (one less on a low screen), titles and the command.
const OTHER_LINES = 20;
/** Lines of the screen above the history, which has at least one line. */
export const linesAboveHistory = (state: Pick<State, 'size'>): number =>
  TOKEN_FACTS.length + OTHER_LINES - Number(isLow(state));

/** One row for all use, one or two per change, and one that says where to find more. */
function historyRows({ lastUse, changes, isTruncated }: TokenHistory, columns: number): number {
  const rows = changes.reduce((sum, record) => sum + recordRows(record, columns, false), 0);
  return (lastUse === null ? 0 : 1) + rows + (isTruncated ? 1 : 0);
}

const lastTop = (state: State) =>
  // Without column titles there is room for one more line.
  Math.max(0, linesAboveHistory(state) + Math.max(1, rowsOf(state)) - (listRows(state) + 1));

const rowsOf = (state: State) => (state.token?.history ? historyRows(state.token.history, detailColumns(state)) : 0);

export const scrolled = (state: State, by: number): State =>
  withToken(state, { top: Math.max(0, Math.min(lastTop(state), (state.token?.top ?? 0) + by)) });
