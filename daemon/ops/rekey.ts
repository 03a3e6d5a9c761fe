/** `llmp migrate rekey`: encrypts upstream keys with a new encryption key, also while daemons use them. */
import { type Environment, loadPart, SettingsError } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { realClock } from '../process/clock.js';
import { openDatabase } from '../store/databases.js';
import { secretBoxFor } from '../store/open.js';
import { type ResealResult, reseal } from '../store/sql/resealing.js';
import { DirectMigrationError, asOperatorError, refuseMissing } from './migrations.js';
import { EXIT } from '../api/vocabulary.js';

const NEEDED = ['databaseDriver', 'database', 'encryptionKey', 'previousEncryptionKey'] as const;

/** @throws {DirectMigrationError} */
export async function rekey(
  env: Environment,
  envFile: string | undefined,
  isRehearsal: boolean,
): Promise<ResealResult> {
  const { database, box } = openFromSettings(env, envFile);
  try {
    return await asOperatorError(reseal(database, box, isRehearsal));
  } finally {
    await database.close();
  }
}

function openFromSettings(env: Environment, envFile: string | undefined) {
  try {
    const file = envFile === undefined ? undefined : readEnvFile(envFile);
    const { settings } = loadPart({ env, file }, NEEDED);
    if (!settings.previousEncryptionKey)
      throw new SettingsError([
        'ENCRYPTION_KEY_PREVIOUS is not set. Set it to the old key, and ENCRYPTION_KEY to the new key',
      ]);
    refuseMissing(settings.database);
    return { box: secretBoxFor(settings), database: openDatabase(settings, realClock) };
  } catch (error) {
    if (error instanceof SettingsError) throw new DirectMigrationError(EXIT.configuration, error.message, error);
    throw error;
  }
}
