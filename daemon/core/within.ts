import type { Clock } from './ports.js';
import { unavailable } from './refusal.js';

/** The longest that a request of a client waits for the database. */
export const DATABASE_WAIT_MS = 10_000;
/** The longest that a request of the management API does: a report over a year takes its time, and the database ends it after that. */
export const MANAGEMENT_WAIT_MS = 30_000;

/**
 * Waits for `work`, but no longer than `ms`. It goes on behind that, and nobody hears what came of it.
 *
 * @param work asks `isLate` before it does what only makes sense for somebody who waits.
 * @throws {Refusal} `unavailable` when it takes longer.
 */
export async function within<T>(
  clock: Pick<Clock, 'after'>,
  ms: number,
  work: (isLate: () => boolean) => Promise<T>,
): Promise<T> {
  let isLate = false;
  let cancel: () => void = () => undefined;
  const late = new Promise<never>((_, reject) => {
    cancel = clock.after(ms, () => {
      isLate = true;
      reject(unavailable(new Error(`the database did not answer within ${ms / 1000} s`)));
    });
  });
  const answer = work(() => isLate);
  try {
    return await Promise.race([answer, late]);
  } finally {
    cancel();
    answer.catch(() => undefined); // Of which nobody is told any more.
  }
}
