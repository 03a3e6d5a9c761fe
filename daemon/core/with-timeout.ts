import type { Clock } from './ports.js';

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
