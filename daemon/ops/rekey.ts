/** `llmp migrate rekey`: upstream keys from one encryption key to the next, beside the daemons that use them. */
import { type Environment, loadPart, SettingsError } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { realClock } from '../process/clock.js';
import { boxOf, openDatabase } from '../store/open.js';
import { type Resealed, reseal } from '../store/sql/resealing.js';
import { DirectMigrationError, explained, refuseMissing } from './migrations.js';
import { EXIT } from '../api/vocabulary.js';

const NEEDED = ['databaseDriver', 'database', 'encryptionKey', 'previousEncryptionKey'] as const;

/** @throws {DirectMigrationError} */
export async function rekey(env: Environment, envFile: string | undefined, isRehearsal: boolean): Promise<Resealed> {
  const { database, box } = opened(env, envFile);
  try {
    return await explained(reseal(database, box, isRehearsal));
  } finally {
    await database.close();
  }
}

function opened(env: Environment, envFile: string | undefined) {
  try {
    const file = envFile === undefined ? undefined : readEnvFile(envFile);
    const { settings } = loadPart({ env, file }, NEEDED);
    if (!settings.previousEncryptionKey)
      throw new SettingsError([
        'ENCRYPTION_KEY_PREVIOUS is not set: it is the key before, and ENCRYPTION_KEY the new one',
      ]);
    refuseMissing(settings.database);
    return { box: boxOf(settings), database: openDatabase(settings, realClock) };
  } catch (error) {
    if (error instanceof SettingsError) throw new DirectMigrationError(EXIT.configuration, error.message, error);
    throw error;
  }
}
