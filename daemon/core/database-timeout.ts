import { withTimeout } from './with-timeout.js';
import type { Clock } from './ports.js';
import { unavailable } from './refusal.js';

/** Maximum time that a client's request waits for the database. */
export const DATABASE_WAIT_MS = 10_000;
/** The same for the management API, where a report over a year takes long. The database's own timeout is equal. */
export const MANAGEMENT_WAIT_MS = 30_000;

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
