/** How the daemon is reached, from how it answers. */
import type { Effect, Failure } from './exchange.js';
import type { Connection, State, Step } from './state.js';

const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 15_000;
/** A daemon's clock further away than this is told of: times on the screen are by it. */
export const SKEW_TOLD_MS = 5_000;

export const NOTHING_HEARD: Connection = {
  is: 'connecting',
  answeredMs: null,
  failure: null,
  retryMs: null,
  failures: 0,
  skewMs: null,
};

export function answered(state: State): Step {
  const { connection } = state;
  const wasAway = connection.is !== 'live' && connection.answeredMs !== null;
  const live: Connection = {
    ...connection,
    is: 'live',
    answeredMs: state.nowMs,
    failure: null,
    retryMs: null,
    failures: 0,
  };
  const next = { ...state, connection: live };
  return wasAway ? [{ ...next, message: { words: 'Back again', tone: 'good', untilMs: state.nowMs + 3_000 } }] : [next];
}

/** A question that got no answer, where that says something of the daemon and not of the question. */
export function failed(state: State, failure: Failure): Step {
  const { connection } = state;
  if (failure.status === 401) {
    return [{ ...state, connection: { ...connection, is: 'denied', failure, retryMs: null } }];
  }
  const isBusy = failure.kind === 'refused';
  // Several questions are asked at once; they fail as one.
  const isNew = connection.retryMs === null || connection.retryMs <= state.nowMs;
  if (!isNew) return [{ ...state, connection: { ...connection, is: isBusy ? 'stale' : 'offline', failure } }];
  const failures = connection.failures + 1;
  const delayMs = failure.retryAfterMs ?? Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), LONGEST_RETRY_MS);
  const next: Connection = {
    ...connection,
    is: isBusy ? 'stale' : 'offline',
    failure,
    failures,
    retryMs: state.nowMs + delayMs,
  };
  const wake: Effect = { do: 'wake', name: 'refresh', afterMs: delayMs };
  return [{ ...state, connection: next }, wake];
}

/** Whether a failure is one of the daemon or the way to it; others are of the question that was asked. */
export const isOfDaemon = ({ kind, status }: Failure) =>
  kind === 'unreachable' || status === null || status === 401 || status === 429 || status >= 500;
