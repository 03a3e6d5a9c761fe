/** Waiting for a limited time, and repeating work. All of it by the injected clock. */
import type { Clock } from './ports.js';
import { unavailable } from './refusal.js';

/** Maximum time that a client's request waits for the database. */
export const DATABASE_WAIT_MS = 10_000;
/** The same for the management API, where a report over a year takes long. The database's own timeout is equal. */
export const MANAGEMENT_WAIT_MS = 30_000;

/**
 * Waits for `work` up to `ms`. After that the work continues, and its result or failure is ignored.
 *
 * @param work a promise for work in progress.
 * @param late returns the result to use after the timeout, or throws.
 * @throws what `work` or `late` throws.
 */
export async function withTimeout<T, Late>(
  clock: Pick<Clock, 'after'>,
  ms: number,
  work: Promise<T>,
  late: () => Late,
): Promise<T | Late> {
  let cancel: () => void = () => undefined;
  const timeout = new Promise<void>((resolve) => {
    cancel = clock.after(ms, resolve);
  });
  try {
    return await Promise.race([work, timeout.then(late)]);
  } finally {
    cancel();
  }
}

/**
 * Waits for database work up to `ms`. After that the work continues, and its result is ignored.
 *
 * @param work calls `isLate` before steps that are only useful while the caller still waits.
 * @throws {Refusal} `unavailable` when it takes longer.
 */
export async function withDatabaseTimeout<T>(
  clock: Pick<Clock, 'after'>,
  ms: number,
  work: (isLate: () => boolean) => Promise<T>,
): Promise<T> {
  let isLate = false;
  const result = work(() => isLate);
  return await withTimeout(clock, ms, result, () => {
    isLate = true;
    throw unavailable(new Error(`the database did not respond within ${ms / 1000} s`));
  });
}

/** So short that a process which is paused for longer has hardly used up its time. */
const STEP_MS = 100;

/**
 * Waits for `work` up to `ms` in which this process runs. Time in which it is paused does not count: after a pause timers run first, and work that
 * was completed meanwhile would look late. Use it where a verdict on another process must not depend on pauses of this one.
 *
 * @returns whether it was completed in time.
 * @throws what `work` throws.
 */
export async function isDoneWithin(clock: Pick<Clock, 'after'>, ms: number, work: Promise<unknown>): Promise<boolean> {
  const done = work.then(() => true);
  for (let waitedMs = 0; waitedMs < ms; waitedMs += STEP_MS) {
    if (await withTimeout(clock, Math.min(STEP_MS, ms - waitedMs), done, () => false)) return true;
  }
  return false;
}

// Node's own timers are late by some milliseconds under load; anything later means that the process was stalled.
const STALL_MS = 50;
const NEXT_TURN_MS = 1;

/**
 * Calls `action` after `ms`. If the process was stalled meanwhile (suspended or blocked), it first lets the event loop read what has
 * arrived. Node runs timers before it reads sockets: a response that arrived in time would count as missing, and the upstream would be
 * blamed.
 *
 * @returns a function that cancels the timeout.
 */
export function timeoutAfterReads(
  clock: Pick<Clock, 'after' | 'monotonic'>,
  ms: number,
  action: () => void,
): () => void {
  const dueMs = clock.monotonic() + ms;
  let cancel = clock.after(ms, () => {
    if (clock.monotonic() < dueMs + STALL_MS) action();
    else cancel = clock.after(NEXT_TURN_MS, action);
  });
  return () => {
    cancel();
  };
}

/**
 * Repeats `action`, the first time after `ms`, and then `ms` after it has ended.
 *
 * @param action may return a promise. If it rejects, that is ignored: the next time may succeed.
 * @returns a function that stops it.
 */
export function every(clock: Pick<Clock, 'after'>, ms: number, action: () => unknown): () => void {
  let isStopped = false;
  let cancel: () => void = () => undefined;
  const again = () => {
    if (!isStopped) cancel = clock.after(ms, run);
  };
  const run = () => {
    const result = action();
    if (result instanceof Promise) void result.then(again, again);
    else again();
  };
  again();
  return () => {
    isStopped = true;
    cancel();
  };
}
