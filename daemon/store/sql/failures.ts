import { BaseError } from 'sequelize';
import { StoreConflict, StoreUnavailable } from '../../core/ports.js';

/** Sequelize's errors carry the statement and its values, upstream keys among them. Only the driver's code and words get out. */
export async function explained<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    const cause = error instanceof BaseError ? driversOwn(error) : error;
    if (!(cause instanceof Error) || !isOfDatabase(error, cause)) throw error;
    // A trigger's veto is a failed constraint too; only one of uniqueness is a conflict.
    if (cause.message.includes('UNIQUE constraint failed')) throw new StoreConflict('a unique value is taken');
    throw new StoreUnavailable(cause.message);
  }
}

function driversOwn(error: BaseError): Error {
  const { original, parent } = error as BaseError & { original?: Error; parent?: Error };
  return original ?? parent ?? error;
}

const isOfDatabase = (error: unknown, cause: Error) =>
  error instanceof BaseError || String((cause as { code?: unknown }).code).startsWith('SQLITE_');
