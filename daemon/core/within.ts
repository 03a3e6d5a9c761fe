import { inTime } from './in-time.js';
import type { Clock } from './ports.js';
import { unavailable } from './refusal.js';

/** The longest that a request of a client waits for the database. */
export const DATABASE_WAIT_MS = 10_000;
/** The same for the management API. A report over a year takes its time; the database ends it after as long. */
export const MANAGEMENT_WAIT_MS = 30_000;

/**
 * Waits for `work`, but no longer than `ms`. After that the work goes on, and its result is not used.
 *
 * @param work calls `isLate` before it does what is of use only while its result is waited for.
 * @throws {Refusal} `unavailable` when it takes longer.
 */
export async function within<T>(
  clock: Pick<Clock, 'after'>,
  ms: number,
  work: (isLate: () => boolean) => Promise<T>,
): Promise<T> {
  let isLate = false;
  const answer = work(() => isLate);
  return await inTime(clock, ms, answer, () => {
    isLate = true;
    throw unavailable(new Error(`the database did not answer within ${ms / 1000} s`));
  });
}
