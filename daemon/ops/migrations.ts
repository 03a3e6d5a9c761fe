/** `llmp migrate … --direct` migrates the schema without a daemon. `llmp migrate rekey` encrypts upstream keys with a new encryption key. */
import type { DatabaseAddress } from '../../config/database-url.js';
import { type Environment, SettingsError } from '../../config/settings.js';
import { readVersion } from '../../config/version.js';
import { type MigrationStatus, Migrator } from '../../migrations/migrator.js';
import { realClock } from '../process/clock.js';
import { openDatabase } from '../store/databases.js';
import { secretBoxFor } from '../store/open.js';
import { type ResealResult, reseal } from '../store/sql/resealing.js';
import { requireSqlite } from '../store/sqlite-available.js';
import { lockDatabase } from '../store/sql/sqlite.js';
import { asOperatorError, fromSettings, refuseMissing } from './operator-error.js';

export interface DirectMigrations {
  status(): Promise<MigrationStatus>;
  up(): Promise<MigrationStatus>;
  close(): Promise<void>;
}

/** Opens the database that the settings name. A missing database is not created, because the path is probably wrong. */
export function directMigrations(env: Environment, envFile?: string): DirectMigrations {
  const { address, database } = fromSettings(env, envFile, ['databaseDriver', 'database'], (settings) => {
    const address = settings.database;
    refuseMissing(address);
    if (address.driver === 'sqlite') requireSqlite();
    return { address, database: openDatabase(settings, realClock) };
  });
  const migrator = new Migrator(database, readVersion());
  return {
    status: () => asOperatorError(migrator.status()),
    up: () => asOperatorError(whileLocked(address, () => migrator.up())),
    close: () => database.close(),
  };
}

const FOR_REKEY = ['databaseDriver', 'database', 'encryptionKey', 'previousEncryptionKey'] as const;

/** Encrypts upstream keys with the new encryption key, also while daemons use them. @throws {OperatorError} */
export async function rekey(
  env: Environment,
  envFile: string | undefined,
  isRehearsal: boolean,
): Promise<ResealResult> {
  const { database, box } = fromSettings(env, envFile, FOR_REKEY, (settings) => {
    if (!settings.previousEncryptionKey)
      throw new SettingsError([
        'ENCRYPTION_KEY_PREVIOUS is not set. Set it to the old key, and ENCRYPTION_KEY to the new key',
      ]);
    refuseMissing(settings.database);
    return { box: secretBoxFor(settings), database: openDatabase(settings, realClock) };
  });
  try {
    return await asOperatorError(reseal(database, box, isRehearsal));
  } finally {
    await database.close();
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
