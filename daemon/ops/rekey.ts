/** `llmp migrate rekey`: upstream keys from one encryption key to the next, beside the daemons that use them. */
import { existsSync } from 'node:fs';
import { type Environment, loadPart, SettingsError } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { boxOf } from '../store/open.js';
import { type Resealed, reseal } from '../store/sql/resealing.js';
import { SqliteDatabase } from '../store/sql/sqlite-database.js';
import { DirectMigrationError, EXIT } from './migrations.js';

const NEEDED = ['databaseDriver', 'databasePath', 'encryptionKey', 'previousEncryptionKey'] as const;

/** @throws {DirectMigrationError} */
export async function rekey(env: Environment, envFile: string | undefined, isRehearsal: boolean): Promise<Resealed> {
  const { settings, box } = settingsOf(env, envFile);
  const database = new SqliteDatabase(settings.databasePath);
  try {
    return await reseal(database, box, isRehearsal);
  } finally {
    await database.close();
  }
}

function settingsOf(env: Environment, envFile: string | undefined) {
  try {
    const file = envFile === undefined ? undefined : readEnvFile(envFile);
    const { settings } = loadPart({ env, file }, NEEDED);
    if (!settings.previousEncryptionKey)
      throw new SettingsError([
        'ENCRYPTION_KEY_PREVIOUS is not set: it is the key before, and ENCRYPTION_KEY the new one',
      ]);
    if (!existsSync(settings.databasePath)) {
      throw new DirectMigrationError(EXIT.notFound, `there is no database ${settings.databasePath}`);
    }
    return { settings, box: boxOf(settings) };
  } catch (error) {
    if (error instanceof SettingsError) throw new DirectMigrationError(EXIT.configuration, error.message, error);
    throw error;
  }
}
