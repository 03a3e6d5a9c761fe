/** What went wrong at the database, in words that give nothing away. */
import { BaseError, UniqueConstraintError } from 'sequelize';
import { StoreConflict, StoreUnavailable } from '../../core/ports.js';

/** Sequelize's errors carry the statement and its values, upstream keys among them. Only the driver's code and words get out. */
export async function explained<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    // What runs migrations says which one it was.
    if (!(error instanceof BaseError) && error instanceof Error && error.cause instanceof BaseError) {
      throw new StoreUnavailable(error.message);
    }
    const cause = error instanceof BaseError ? driversOwn(error) : error;
    if (!(cause instanceof Error) || !isOfDatabase(error, cause)) throw error;
    // A trigger's veto is a failed constraint too; only one of uniqueness is a conflict.
    const isTaken = error instanceof UniqueConstraintError || cause.message.includes('UNIQUE constraint failed');
    if (isTaken) throw new StoreConflict('a unique value is taken');
    throw new StoreUnavailable(cause.message);
  }
}

// Of PostgreSQL: deadlock_detected, serialization_failure. Of MySQL.
const DEADLOCKS: readonly unknown[] = ['40P01', '40001', 'ER_LOCK_DEADLOCK'];

/** Whether the database took a transaction back because of others, so that it may be done again. */
export const isDeadlock = (error: unknown): boolean =>
  error instanceof BaseError && DEADLOCKS.includes((driversOwn(error) as Error & { code?: unknown }).code);

function driversOwn(error: BaseError): Error {
  const { original, parent } = error as BaseError & { original?: Error; parent?: Error };
  return original ?? parent ?? error;
}

const isOfDatabase = (error: unknown, cause: Error) =>
  error instanceof BaseError || String((cause as { code?: unknown }).code).startsWith('SQLITE_');
