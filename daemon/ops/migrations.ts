/** `llmp migrate … --direct`: migrates the schema without a daemon. */
import { existsSync } from 'node:fs';
import type { DatabaseAddress } from '../../config/database-url.js';
import { type Environment, loadPart, SettingsError } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { readVersion } from '../../config/version.js';
import { MigrationsLocked } from '../../migrations/lock.js';
import { type MigrationStatus, Migrator } from '../../migrations/migrator.js';
import { SchemaTooNew } from '../../migrations/schema-too-new.js';
import { realClock } from '../process/clock.js';
import { StoreRefused, StoreUnavailable } from '../core/ports.js';
import { PathInUse } from '../store/lock.js';
import { openDatabase } from '../store/databases.js';
import { withStoreErrors as asStoreError } from '../store/sql/failures.js';
import { requireSqlite, SqliteUnavailable } from '../store/sqlite-available.js';
import { lockDatabase } from '../store/sql/sqlite.js';
import { EXIT } from '../api/vocabulary.js';

/** A failure that the operator can correct, with the exit code of the command. */
export class DirectMigrationError extends Error {
  readonly exitCode: number;
  override name = 'DirectMigrationError';
  constructor(exitCode: number, message: string, cause?: unknown) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}

export interface DirectMigrations {
  status(): Promise<MigrationStatus>;
  up(): Promise<MigrationStatus>;
  close(): Promise<void>;
}

/** Opens the database that the settings name. A missing database is not created, because the path is probably wrong. */
export function directMigrations(env: Environment, envFile?: string): DirectMigrations {
  const { address, database } = openFromSettings(env, envFile);
  const migrator = new Migrator(database, readVersion());
  return {
    status: () => asOperatorError(migrator.status()),
    up: () => asOperatorError(whileLocked(address, () => migrator.up())),
    close: () => database.close(),
  };
}

/** @throws {DirectMigrationError} if the database file does not exist. */
export function refuseMissing(address: DatabaseAddress): void {
  if (address.driver !== 'sqlite' || existsSync(address.path)) return;
  throw new DirectMigrationError(EXIT.notFound, `database ${address.path} does not exist. Check DATABASE_URL`);
}

function openFromSettings(env: Environment, envFile: string | undefined) {
  try {
    const file = envFile === undefined ? undefined : readEnvFile(envFile);
    const address = loadPart({ env, file }, ['databaseDriver', 'database']).settings.database;
    refuseMissing(address);
    if (address.driver === 'sqlite') requireSqlite();
    return { address, database: openDatabase({ database: address }, realClock) };
  } catch (error) {
    if (error instanceof SettingsError || error instanceof SqliteUnavailable)
      throw new DirectMigrationError(EXIT.configuration, error.message, error);
    throw error;
  }
}

/** Locks an SQLite database. On a database server the migrator itself excludes other migrators, including daemons. */
async function whileLocked<T>(address: DatabaseAddress, work: () => Promise<T>): Promise<T> {
  if (address.driver !== 'sqlite') return work();
  const unlock = await lockDatabase(address.path);
  try {
    return await work();
  } finally {
    await unlock();
  }
}

/** @throws {DirectMigrationError} for failures that an operator can correct. */
export async function asOperatorError<T>(result: Promise<T>): Promise<T> {
  try {
    return await asStoreError(result);
  } catch (error) {
    if (error instanceof PathInUse) {
      throw new DirectMigrationError(
        EXIT.conflict,
        `${error.message}. Let the running daemon migrate: llmp migrate up`,
        error,
      );
    }
    if (error instanceof SchemaTooNew || error instanceof MigrationsLocked) {
      throw new DirectMigrationError(EXIT.conflict, error.message, error);
    }
    const text = error instanceof Error ? error.message : String(error);
    if (/SQLITE_(?:CANTOPEN|READONLY)|EACCES|EPERM/.test(text)) {
      throw new DirectMigrationError(EXIT.permission, `no permission to open the database: ${text}`, error);
    }
    if (/SQLITE_NOTADB/.test(text))
      throw new DirectMigrationError(EXIT.configuration, 'the file is not an llmp database. Check DATABASE_URL', error);
    if (error instanceof StoreRefused) {
      throw new DirectMigrationError(error.isLasting ? EXIT.configuration : EXIT.unavailable, error.message, error);
    }
    if (error instanceof StoreUnavailable) {
      throw new DirectMigrationError(EXIT.unavailable, `the database is unavailable: ${text}`, error);
    }
    throw error;
  }
}
