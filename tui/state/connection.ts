/** How the daemon is reached, from how it answers. */
import type { Effect, Failure, Question } from './exchange.js';
import { type Connection, saying, type State, type Step } from './state.js';

const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 15_000;
/** What a daemon asks for with `Retry-After` is heeded up to here; who wants it sooner presses ^r. */
const LONGEST_ASKED_MS = 300_000;
/** After so many refreshes without an answer what is shown is not live any more. */
const MISSED_REFRESHES = 3;
/** A daemon's clock further away than this is told of: times on the screen are by it. */
export const SKEW_TOLD_MS = 5_000;

export const NOTHING_HEARD: Connection = {
  is: 'connecting',
  answeredMs: null,
  askedMs: null,
  failure: null,
  failing: [],
  unanswered: {},
  retryMs: null,
  failures: 0,
  skewMs: null,
};

/** Until the operator says so nothing is asked with a token that was refused: again and again would look like an attack. */
export const mayAsk = ({ connection }: State) => connection.is !== 'denied';

/** The operator says so. */
export const tryAgain = (state: State): State =>
  mayAsk(state) ? state : { ...state, connection: { ...state.connection, is: 'connecting' } };

/** What is shown is asked for; what failed and is not asked for any more is forgotten. */
export function asking(state: State, questions: readonly Question['of'][]): State {
  const { connection, nowMs } = state;
  const failing = connection.failing.filter((of) => questions.includes(of));
  const hasMissed = questions.some((of) => isMissed(connection, of));
  const unanswered = Object.fromEntries(
    questions.map((of) => {
      const { sinceMs, refreshes } = connection.unanswered[of] ?? { sinceMs: nowMs, refreshes: 0 };
      return [of, { sinceMs, refreshes: refreshes + 1 }];
    }),
  );
  const is = connection.is === 'live' && hasMissed ? 'stale' : connection.is;
  return { ...state, connection: { ...connection, is, askedMs: nowMs, failing, unanswered } };
}

const isMissed = ({ unanswered }: Connection, of: Question['of']) =>
  (unanswered[of]?.refreshes ?? 0) >= MISSED_REFRESHES;

/** Since when what is shown is not known to hold; null: nothing is known. */
export function staleSince({ unanswered, answeredMs }: Connection): number | null {
  if (answeredMs === null) return null;
  return Math.min(answeredMs, ...Object.values(unanswered).map(({ sinceMs }) => sinceMs));
}

/** How long to wait before asking again. */
export function nextMs({ connection: { is, retryMs }, refreshMs, nowMs }: State): number {
  const isAway = is === 'offline' || is === 'stale';
  return isAway && retryMs !== null && retryMs > nowMs ? retryMs - nowMs : refreshMs;
}

/** The daemon answers; all is well again when it has answered everything that it had not. */
export function answered(state: State, of: Question['of']): State {
  const { connection, nowMs } = state;
  if (!mayAsk(state)) return state;
  const failing = connection.failing.filter((other) => other !== of);
  const others = Object.entries(connection.unanswered).filter(([other]) => other !== of);
  const unanswered = Object.fromEntries(others) as Connection['unanswered'];
  const heardNow = { ...connection, answeredMs: nowMs, failing, unanswered };
  const isStale =
    failing.length > 0 || (Object.keys(unanswered) as Question['of'][]).some((it) => isMissed(heardNow, it));
  const next: Connection = isStale
    ? { ...heardNow, is: 'stale' }
    : { ...heardNow, is: 'live', failure: null, retryMs: null, failures: 0 };
  const heard = { ...state, connection: next };
  return wasAway(state) ? saying(heard, 'Back again', 'good') : heard;
}

/** For longer than one question is late. */
const wasAway = ({ connection: { is, answeredMs, failure }, nowMs, refreshMs }: State) =>
  (is === 'offline' || (is === 'stale' && failure === null)) && answeredMs !== null && nowMs - answeredMs > refreshMs;

/**
 * A question or a change that got no answer, where that says something of the daemon and not of the question.
 *
 * @param of null for a change.
 */
export function failed(state: State, failure: Failure, of: Question['of'] | null): Step {
  const { connection, nowMs } = state;
  if (failure.status === 401) {
    return [{ ...state, connection: { ...connection, is: 'denied', failure, retryMs: null } }];
  }
  if (!mayAsk(state)) return [state];
  const failing = of === null || connection.failing.includes(of) ? connection.failing : [...connection.failing, of];
  const is = answersOthers(state, failure, of) ? 'stale' : 'offline';
  const next: Connection = { ...connection, is, failure, failing };
  // Several questions are asked at once; they fail as one.
  if (connection.retryMs !== null && connection.retryMs > nowMs) return [{ ...state, connection: next }];
  const failures = connection.failures + 1;
  const delayMs = delayOf(failure, failures);
  const wake: Effect = { do: 'wake', name: 'refresh', afterMs: delayMs };
  return [{ ...state, connection: { ...next, failures, retryMs: nowMs + delayMs } }, wake];
}

/** One question may take too long while all others are answered. */
function answersOthers({ connection }: State, { kind }: Failure, of: Question['of'] | null): boolean {
  const { answeredMs, askedMs } = connection;
  if (kind === 'refused') return true;
  return of !== null && answeredMs !== null && askedMs !== null && answeredMs > askedMs;
}

function delayOf({ retryAfterMs }: Failure, failures: number): number {
  if (retryAfterMs !== null && Number.isFinite(retryAfterMs)) {
    return Math.max(FIRST_RETRY_MS, Math.min(retryAfterMs, LONGEST_ASKED_MS));
  }
  // The exponent is bounded as well, for a daemon may be away for weeks.
  return Math.min(FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 10), LONGEST_RETRY_MS);
}

/** Whether a failure is one of the daemon or the way to it; others are of the question that was asked. */
export const isOfDaemon = ({ kind, status }: Failure) =>
  kind === 'unreachable' || status === null || status === 401 || status === 429 || status >= 500;
