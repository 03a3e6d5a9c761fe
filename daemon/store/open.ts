import { existsSync } from 'node:fs';
import { type Settings, SettingsError } from '../../config/settings.js';
import type { Ledger, RecordStore, TokenLookup, UsageStore } from '../core/ports.js';
import { PathInUse } from './lock.js';
import { Opened } from './opened.js';
import type { AnchorStore } from './audit-file/chain.js';
import { BadKeyFile, keyFromFile, SecretBox } from './secrets.js';
import { SqlAnchors } from './sql/anchors.js';
import type { Database } from './sql/database.js';
import { SqliteDatabase } from './sql/sqlite-database.js';
import { SqlLedger } from './sql/ledger.js';
import { SqlRecords } from './sql/records.js';
import { lockDatabase } from './sql/sqlite.js';
import { SqlTokenLookup } from './sql/tokens.js';
import { SqlUsage } from './sql/usage.js';

export type StoreSettings = Pick<Settings, 'databasePath' | 'encryptionKey'> &
  Partial<Pick<Settings, 'previousEncryptionKey'>>;

export interface Stores {
  database: Database;
  records: RecordStore;
  anchors: AnchorStore;
  lookup: TokenLookup;
  ledger: Ledger;
  usage: UsageStore;
  /** Once there are tables: refuses a database whose upstream keys this process cannot open. @throws {SettingsError} */
  checkEncryptionKey(): Promise<void>;
  /** 32 bytes that come from the encryption key and serve this purpose alone. */
  deriveKey(purpose: string): Buffer;
  close(): Promise<void>;
}

/**
 * Opens the database for this process alone.
 *
 * @throws {SettingsError} when it is another process's, or the encryption key is not the right one.
 */
export async function openStores(settings: StoreSettings): Promise<Stores> {
  const path = settings.databasePath;
  const unlock = await lockDatabase(path).catch((error: unknown) => {
    throw error instanceof PathInUse ? new SettingsError([`DATABASE_URL: ${error.message}`]) : error;
  });
  const opened = new Opened();
  opened.add({ close: unlock });
  try {
    const box = boxOf(settings);
    const database = opened.add(new SqliteDatabase(path));
    await database.select('SELECT 1'); // A file that cannot be opened, or is no database, shows here.
    return {
      database,
      records: new SqlRecords(database, box),
      anchors: new SqlAnchors(database),
      lookup: new SqlTokenLookup(database, box),
      ledger: new SqlLedger(database),
      usage: new SqlUsage(database),
      checkEncryptionKey: () => checkEncryptionKey(database, box),
      deriveKey: (purpose) => box.derive(purpose),
      close: () => opened.close(),
    };
  } catch (error) {
    await opened.close().catch(() => undefined);
    throw error;
  }
}

/** @throws {SettingsError} */
export function boxOf({ databasePath, encryptionKey, previousEncryptionKey }: StoreSettings): SecretBox {
  return new SecretBox(encryptionKey ?? keyBeside(databasePath), previousEncryptionKey);
}

function keyBeside(databasePath: string): Buffer {
  try {
    return keyFromFile(`${databasePath}.key`, !existsSync(databasePath));
  } catch (error) {
    throw error instanceof BadKeyFile ? new SettingsError([`ENCRYPTION_KEY: ${error.message}`]) : error;
  }
}

async function checkEncryptionKey(database: Database, box: SecretBox): Promise<void> {
  const sealedWith = await database.select<{ id: string }>('SELECT DISTINCT api_key_id AS id FROM projects');
  if (sealedWith.some(({ id }) => !box.keyIds.includes(id))) {
    throw new SettingsError([
      'ENCRYPTION_KEY: upstream keys in the database were sealed with another key; if that is the one before, set ENCRYPTION_KEY_PREVIOUS',
    ]);
  }
}
