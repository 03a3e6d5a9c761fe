import { existsSync } from 'node:fs';
import type { DatabaseAddress } from '../../config/database-url.js';
import { type AllSettings, type Environment, loadPart, SettingsError } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { MigrationsLocked, SchemaTooNew } from '../../migrations/failures.js';
import { EXIT } from '../api/vocabulary.js';
import { StoreRefused, StoreUnavailable } from '../core/ports.js';
import { PathInUse } from '../store/lock.js';
import { withStoreErrors as asStoreError } from '../store/sql/failures.js';
import { SqliteUnavailable } from '../store/sqlite-available.js';

/** A failure that the operator can correct, with the exit code of the command. */
export class OperatorError extends Error {
  readonly exitCode: number;
  override name = 'OperatorError';
  constructor(exitCode: number, message: string, cause?: unknown) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}

/** Some settings, for `use`. @throws {OperatorError} if they are invalid, or if `use` finds that they do not fit. */
export function fromSettings<Wanted extends keyof AllSettings, T>(
  env: Environment,
  envFile: string | undefined,
  keys: readonly Wanted[],
  use: (settings: Pick<AllSettings, Wanted>) => T,
): T {
  return withValidSettings(() => {
    const file = envFile === undefined ? undefined : readEnvFile(envFile);
    return use(loadPart({ env, file }, keys).settings);
  });
}

/** @throws {OperatorError} if `use` finds that settings are invalid. */
export function withValidSettings<T>(use: () => T): T {
  try {
    return use();
  } catch (error) {
    if (error instanceof SettingsError || error instanceof SqliteUnavailable)
      throw new OperatorError(EXIT.configuration, error.message, error);
    throw deniedBy(error) ?? error;
  }
}

/** @returns null for another error than one of a file or folder that this user may not use. */
function deniedBy(error: unknown): OperatorError | null {
  const { code, path, message } = error as NodeJS.ErrnoException;
  if (path === undefined || !['EACCES', 'EPERM', 'EROFS'].includes(code ?? '')) return null;
  return new OperatorError(EXIT.permission, `no permission: ${message}`, error);
}

/** @throws {OperatorError} if the database file does not exist. */
export function refuseMissing(address: DatabaseAddress): void {
  if (address.driver !== 'sqlite' || existsSync(address.path)) return;
  throw new OperatorError(EXIT.notFound, `database ${address.path} does not exist. Check DATABASE_URL`);
}

/** @throws {OperatorError} for failures that an operator can correct. */
export async function asOperatorError<T>(result: Promise<T>): Promise<T> {
  try {
    return await asStoreError(result);
  } catch (error) {
    if (error instanceof PathInUse) {
      throw new OperatorError(
        EXIT.conflict,
        `${error.message}. Let the running daemon migrate: llmp migrate up`,
        error,
      );
    }
    if (error instanceof SchemaTooNew || error instanceof MigrationsLocked) {
      throw new OperatorError(EXIT.conflict, error.message, error);
    }
    const denied = deniedBy(error);
    if (denied) throw denied;
    const text = error instanceof Error ? error.message : String(error);
    const { code, path } = error as NodeJS.ErrnoException;
    if (/SQLITE_FULL|ENOSPC|EDQUOT/.test(`${code} ${text}`))
      throw new OperatorError(EXIT.unavailable, `the disk is full: ${text}`, error);
    if (code === 'EIO') throw new OperatorError(EXIT.unavailable, `reading or writing failed: ${text}`, error);
    if ((code === 'ENOENT' || code === 'ENOTDIR') && path !== undefined)
      throw new OperatorError(EXIT.notFound, `${path} does not exist, or its folder does not`, error);
    if (/SQLITE_(?:CANTOPEN|READONLY)|EACCES|EPERM/.test(text)) {
      throw new OperatorError(EXIT.permission, `no permission to open the database: ${text}`, error);
    }
    if (/SQLITE_NOTADB/.test(text))
      throw new OperatorError(EXIT.configuration, 'the file is not an llmp database. Check DATABASE_URL', error);
    if (error instanceof StoreRefused) {
      throw new OperatorError(error.isLasting ? EXIT.configuration : EXIT.unavailable, error.message, error);
    }
    if (error instanceof StoreUnavailable) {
      throw new OperatorError(EXIT.unavailable, `the database is unavailable: ${text}`, error);
    }
    throw error;
  }
}
