/** `llmp migrate … --direct`: the schema, when no daemon runs to ask. */
import { existsSync } from 'node:fs';
import type { DatabaseAddress } from '../../config/database-url.js';
import { type Environment, loadPart, SettingsError } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { readVersion } from '../../config/version.js';
import { MigrationsLocked } from '../../migrations/lock.js';
import { type MigrationStatus, Migrator, SchemaTooNew } from '../../migrations/migrator.js';
import { realClock } from '../process/clock.js';
import { StoreUnavailable } from '../core/ports.js';
import { PathInUse } from '../store/lock.js';
import { openDatabase } from '../store/open.js';
import { explained as explainedByStore } from '../store/sql/failures.js';
import { lockDatabase } from '../store/sql/sqlite.js';
import { EXIT } from '../api/vocabulary.js';

/** What stands in the way, in words for the operator, and the exit code that says so. */
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

/** Opens the database that the settings name. A missing one is not created: it would be the wrong one. */
export function directMigrations(env: Environment, envFile?: string): DirectMigrations {
  const { address, database } = opened(env, envFile);
  const migrator = new Migrator(database, readVersion());
  return {
    status: () => explained(migrator.status()),
    up: () => explained(whileLocked(address, () => migrator.up())),
    close: () => database.close(),
  };
}

/** @throws {DirectMigrationError} for a file that is not there. */
export function refuseMissing(address: DatabaseAddress): void {
  if (address.driver !== 'sqlite' || existsSync(address.path)) return;
  throw new DirectMigrationError(EXIT.notFound, `there is no database ${address.path}`);
}

function opened(env: Environment, envFile: string | undefined) {
  try {
    const file = envFile === undefined ? undefined : readEnvFile(envFile);
    const address = loadPart({ env, file }, ['databaseDriver', 'database']).settings.database;
    refuseMissing(address);
    return { address, database: openDatabase({ database: address }, realClock) };
  } catch (error) {
    if (error instanceof SettingsError) throw new DirectMigrationError(EXIT.configuration, error.message, error);
    throw error;
  }
}

/** On a server the migrator sees to it by itself that there is one at a time, daemons included. */
async function whileLocked<T>(address: DatabaseAddress, work: () => Promise<T>): Promise<T> {
  if (address.driver !== 'sqlite') return work();
  const unlock = await lockDatabase(address.path);
  try {
    return await work();
  } finally {
    await unlock();
  }
}

/** @throws {DirectMigrationError} for what an operator can do something about. */
export async function explained<T>(answer: Promise<T>): Promise<T> {
  try {
    return await explainedByStore(answer);
  } catch (error) {
    if (error instanceof PathInUse) {
      throw new DirectMigrationError(EXIT.conflict, `${error.message}; ask it instead: llmp migrate up`, error);
    }
    if (error instanceof SchemaTooNew || error instanceof MigrationsLocked) {
      throw new DirectMigrationError(EXIT.conflict, error.message, error);
    }
    const text = error instanceof Error ? error.message : String(error);
    if (/SQLITE_(?:CANTOPEN|READONLY)|EACCES|EPERM/.test(text)) {
      throw new DirectMigrationError(EXIT.permission, `no permission for the database: ${text}`, error);
    }
    if (/SQLITE_NOTADB/.test(text))
      throw new DirectMigrationError(EXIT.configuration, 'this is no llmp database', error);
    if (error instanceof StoreUnavailable) {
      throw new DirectMigrationError(EXIT.unavailable, `the database is unavailable: ${text}`, error);
    }
    throw error;
  }
}
