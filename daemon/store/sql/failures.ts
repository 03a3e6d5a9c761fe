/** Converts database errors to the errors of the core, without secrets. */
import type { BaseError as SequelizeError } from 'sequelize';
import errors from 'sequelize/lib/errors';
import { StoreConflict, StoreUnavailable } from '../../core/ports.js';
import { refusedBy } from './refused.js';

// Not from the package's main module, which takes as much memory as the rest of a worker.
const { BaseError, UniqueConstraintError } = errors;

/**
 * Sequelize's errors contain the statement and its values, including upstream keys. Only the driver's code and message are passed on.
 *
 * @throws {StoreRefused} for an error that lasts until an operator corrects something.
 */
export async function withStoreErrors<T>(query: Promise<T>): Promise<T> {
  try {
    return await query;
  } catch (error) {
    // The migrator's error names the migration.
    if (!(error instanceof BaseError) && error instanceof Error && error.cause instanceof BaseError) {
      throw refusedBy(driverErrorOf(error.cause), error.message) ?? new StoreUnavailable(error.message);
    }
    const cause = error instanceof BaseError ? driverErrorOf(error) : error;
    if (!(cause instanceof Error) || !isDatabaseError(error, cause)) throw error;
    // A trigger that raises an error also causes a constraint error. Only a uniqueness error is a conflict.
    const isTaken = error instanceof UniqueConstraintError || cause.message.includes('UNIQUE constraint failed');
    if (isTaken) throw new StoreConflict('a unique value is already taken');
    throw refusedBy(cause) ?? new StoreUnavailable(cause.message);
  }
}

// PostgreSQL: deadlock_detected, serialization_failure. MySQL: ER_LOCK_DEADLOCK.
const DEADLOCKS: readonly unknown[] = ['40P01', '40001', 'ER_LOCK_DEADLOCK'];

/** Whether the database rolled the transaction back because of other transactions, so that it can be repeated. */
export const isDeadlock = (error: unknown): boolean =>
  error instanceof BaseError && DEADLOCKS.includes((driverErrorOf(error) as Error & { code?: unknown }).code);

function driverErrorOf(error: SequelizeError): Error {
  const { original, parent } = error as SequelizeError & { original?: Error; parent?: Error };
  return original ?? parent ?? error;
}

const isDatabaseError = (error: unknown, cause: Error) =>
  error instanceof BaseError || String((cause as { code?: unknown }).code).startsWith('SQLITE_');
