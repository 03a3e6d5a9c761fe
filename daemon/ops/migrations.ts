/** `llmp migrate … --direct`: the schema, when no daemon runs to ask. */
import { existsSync } from 'node:fs';
import { type Environment, readSettings, SettingsError } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { readVersion } from '../../config/version.js';
import { type MigrationStatus, Migrator, SchemaTooNew } from '../../migrations/migrator.js';
import { PathInUse } from '../store/lock.js';
import { SqliteDatabase } from '../store/sql/sqlite-database.js';
import { lockDatabase } from '../store/sql/sqlite.js';

/** What stands in the way, in words for the operator, and the exit code that says so. */
export class DirectMigrationError extends Error {
  override name = 'DirectMigrationError';
  constructor(
    readonly exitCode: number,
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}

export const EXIT = { notFound: 4, conflict: 5, permission: 77, configuration: 78 };

export interface DirectMigrations {
  status(): Promise<MigrationStatus>;
  up(): Promise<MigrationStatus>;
  close(): Promise<void>;
}

/** Opens the database that the settings name. A missing one is not created: it would be the wrong one. */
export function directMigrations(env: Environment, envFile?: string): DirectMigrations {
  const path = databasePath(env, envFile);
  if (!existsSync(path)) throw new DirectMigrationError(EXIT.notFound, `there is no database ${path}`);
  const database = new SqliteDatabase(path);
  const migrator = new Migrator(database.sequelize, readVersion());
  return {
    status: () => explained(migrator.status()),
    up: () => explained(whileLocked(path, () => migrator.up())),
    close: () => database.close(),
  };
}

function databasePath(env: Environment, envFile: string | undefined): string {
  try {
    const file = envFile === undefined ? undefined : readEnvFile(envFile);
    return readSettings({ env, file }, ['databaseDriver', 'databasePath']).databasePath;
  } catch (error) {
    if (error instanceof SettingsError) throw new DirectMigrationError(EXIT.configuration, error.message, error);
    throw error;
  }
}

async function whileLocked<T>(path: string, work: () => Promise<T>): Promise<T> {
  const unlock = await lockDatabase(path);
  try {
    return await work();
  } finally {
    await unlock();
  }
}

async function explained<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof PathInUse) {
      throw new DirectMigrationError(EXIT.conflict, `${error.message}; ask it instead: llmp migrate up`, error);
    }
    if (error instanceof SchemaTooNew) throw new DirectMigrationError(EXIT.conflict, error.message, error);
    const text = error instanceof Error ? error.message : String(error);
    if (/SQLITE_(?:CANTOPEN|READONLY)|EACCES|EPERM/.test(text)) {
      throw new DirectMigrationError(EXIT.permission, `no permission for the database: ${text}`, error);
    }
    if (/SQLITE_NOTADB/.test(text))
      throw new DirectMigrationError(EXIT.configuration, 'this is no llmp database', error);
    throw error;
  }
}
