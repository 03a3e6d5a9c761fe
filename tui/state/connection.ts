/** State of the connection to the daemon, derived from its responses, and the retry backoff. */
import type { ProblemCode } from '../../daemon/api/schemas/problem.js';
import type { Effect, Failure, DataRequest } from './exchange.js';
import { type ConnectionState, withMessage, type State, type Transition } from './state.js';

const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 15_000;
/** Upper limit for a `Retry-After` of the daemon. ^r retries sooner. */
const MAX_RETRY_AFTER_MS = 300_000;
/** After this number of refreshes without a response the data is stale. */
const MISSED_REFRESHES = 3;
/** A larger clock difference is shown as a warning, because times on the screen are by the daemon's clock. */
export const SKEW_WARNING_MS = 5_000;

export const NOT_CONNECTED: ConnectionState = {
  is: 'connecting',
  respondedMs: null,
  requestedMs: null,
  failure: null,
  failing: [],
  unanswered: {},
  retryMs: null,
  failures: 0,
  skewMs: null,
};

const SESSION_ENDED: ProblemCode = 'session_ended';

/** Whether the caller's session has ended: only another log-in helps. */
export const hasSessionEnded = ({ connection: { is, failure } }: State): boolean =>
  is === 'denied' && failure?.code === SESSION_ENDED;

/** What was refused, while the connection is `denied`. */
export function whyDenied(state: State): string {
  if (hasSessionEnded(state)) return 'the session has ended';
  const { self } = state;
  return self?.name == null ? 'the management token was refused' : `the secret of ${self.name} was refused`;
}

/** A refused management token is not sent again until the operator retries: repeated attempts would look like an attack. */
export const mayRequest = ({ connection }: State) => connection.is !== 'denied';

/** The operator retries. */
export const tryAgain = (state: State): State =>
  mayRequest(state) ? state : { ...state, connection: { ...state.connection, is: 'connecting' } };

/** Records a refresh. Failures of data that is not requested any more are forgotten. */
export function requesting(state: State, dataRequests: readonly DataRequest['of'][]): State {
  const { connection, nowMs } = state;
  const failing = connection.failing.filter((of) => dataRequests.includes(of));
  const hasMissed = dataRequests.some((of) => isMissed(connection, of));
  const unanswered = Object.fromEntries(
    dataRequests.map((of) => {
      const { sinceMs, refreshes } = connection.unanswered[of] ?? { sinceMs: nowMs, refreshes: 0 };
      return [of, { sinceMs, refreshes: refreshes + 1 }];
    }),
  );
  const is = connection.is === 'live' && hasMissed ? 'stale' : connection.is;
  return { ...state, connection: { ...connection, is, requestedMs: nowMs, failing, unanswered } };
}

const isMissed = ({ unanswered }: ConnectionState, of: DataRequest['of']) =>
  (unanswered[of]?.refreshes ?? 0) >= MISSED_REFRESHES;

/** The time that the data on the screen is from; null: there is no data. */
export function staleSince({ unanswered, respondedMs }: ConnectionState): number | null {
  if (respondedMs === null) return null;
  return Math.min(respondedMs, ...Object.values(unanswered).map(({ sinceMs }) => sinceMs));
}

/** Time until the next refresh. */
export function nextRefreshMs({ connection: { is, retryMs }, refreshMs, nowMs }: State): number {
  const isDown = is === 'offline' || is === 'stale';
  return isDown && retryMs !== null && retryMs > nowMs ? retryMs - nowMs : refreshMs;
}

/** Records a successful response. The connection is live once nothing is failing or overdue. */
export function succeeded(state: State, of: DataRequest['of']): State {
  const { connection, nowMs } = state;
  if (!mayRequest(state)) return state;
  const failing = connection.failing.filter((other) => other !== of);
  const others = Object.entries(connection.unanswered).filter(([other]) => other !== of);
  const unanswered = Object.fromEntries(others) as ConnectionState['unanswered'];
  const updated = { ...connection, respondedMs: nowMs, failing, unanswered };
  const isStale =
    failing.length > 0 || (Object.keys(unanswered) as DataRequest['of'][]).some((it) => isMissed(updated, it));
  const next: ConnectionState = isStale
    ? { ...updated, is: 'stale' }
    : { ...updated, is: 'live', failure: null, retryMs: null, failures: 0 };
  const heard = { ...state, connection: next };
  return wasDown(state) ? withMessage(heard, 'Reconnected', 'good') : heard;
}

/** Whether the daemon did not respond for longer than a refresh interval, so that its return is worth a message. */
const wasDown = ({ connection: { is, respondedMs, failure }, nowMs, refreshMs }: State) =>
  (is === 'offline' || (is === 'stale' && failure === null)) && respondedMs !== null && nowMs - respondedMs > refreshMs;

/**
 * Records a failure that is due to the daemon or the connection, not to the request itself.
 *
 * @param of the kind of data requested; null for a change.
 */
export function failed(state: State, failure: Failure, of: DataRequest['of'] | null): Transition {
  const { connection, nowMs } = state;
  if (failure.status === 401) {
    // The line of messages says that it was refused. What a change did stays.
    const message = state.message?.isResult ? state.message : null;
    return [{ ...state, message, connection: { ...connection, is: 'denied', failure, retryMs: null } }];
  }
  if (!mayRequest(state)) return [state];
  const failing = of === null || connection.failing.includes(of) ? connection.failing : [...connection.failing, of];
  const is = isPartial(state, failure, of) ? 'stale' : 'offline';
  const next: ConnectionState = { ...connection, is, failure, failing };
  // Requests are sent several at a time. Failures of the same refresh count as one.
  if (connection.retryMs !== null && connection.retryMs > nowMs) return [{ ...state, connection: next }];
  const failures = connection.failures + 1;
  const delayMs = delayOf(failure, failures);
  const wake: Effect = { do: 'wake', name: 'refresh', afterMs: delayMs };
  return [{ ...state, connection: { ...next, failures, retryMs: nowMs + delayMs } }, wake];
}

/** Whether other requests still succeed: one of them may time out alone. */
function isPartial({ connection }: State, { kind }: Failure, of: DataRequest['of'] | null): boolean {
  const { respondedMs, requestedMs } = connection;
  if (kind === 'refused') return true;
  return of !== null && respondedMs !== null && requestedMs !== null && respondedMs > requestedMs;
}

function delayOf({ retryAfterMs }: Failure, failures: number): number {
  if (retryAfterMs !== null && Number.isFinite(retryAfterMs)) {
    return Math.max(FIRST_RETRY_MS, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
  }
  // The exponent is limited too, because a daemon may be down for weeks.
  return Math.min(FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 10), MAX_RETRY_MS);
}

const KEY_NOT_CHECKED: ProblemCode = 'key_not_checked';

/** Whether a failure is due to the daemon or the connection, and not to the request itself. */
export const isDaemonFailure = ({ kind, status, code }: Failure) =>
  // The daemon is well: it is the provider that did not respond.
  code !== KEY_NOT_CHECKED &&
  (kind === 'unreachable' || status === null || status === 401 || status === 429 || status >= 500);
