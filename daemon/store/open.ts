import { existsSync, readFileSync } from 'node:fs';
import { type DatabaseAddress, serverAt } from '../../config/database-url.js';
import { type Settings, SettingsError } from '../../config/settings.js';
import type { Clock, Ledger, Neighbourhood, RecordStore, TokenLookup, UsageStore } from '../core/ports.js';
import { PathInUse } from './lock.js';
import { Opened } from './opened.js';
import type { AnchorStore } from './audit-file/chain.js';
import { BadKeyFile, keyFromFile, SecretBox } from './secrets.js';
import { SqlAnchors } from './sql/anchors.js';
import type { Database } from './sql/database.js';
import { ServerDatabase } from './sql/server-database.js';
import { SqliteDatabase } from './sql/sqlite-database.js';
import { SqlNeighbourhood } from './sql/instances.js';
import { SqlLedger } from './sql/ledger.js';
import { SqlRecords } from './sql/records.js';
import { lockDatabase } from './sql/sqlite.js';
import { SqlTokenLookup } from './sql/tokens.js';
import { Totals } from './sql/totals.js';
import { DATABASE_WAITS, type DatabaseWaits } from './sql/waits.js';
import { SqlUsage } from './sql/usage.js';

export type StoreSettings = Pick<Settings, 'database' | 'encryptionKey'> &
  Partial<Pick<Settings, 'previousEncryptionKey' | 'databasePoolSize'>>;

export interface StoreOptions {
  clock: Pick<Clock, 'after' | 'monotonic'>;
  /** For a server, in place of those that are shipped. */
  waits?: Readonly<DatabaseWaits>;
}

export interface Stores {
  database: Database;
  records: RecordStore;
  anchors: AnchorStore;
  lookup: TokenLookup;
  ledger: Ledger;
  /** Null where this process has the database for itself. */
  neighbourhood: Neighbourhood | null;
  usage: UsageStore;
  /** Once there are tables: refuses a database whose upstream keys this process cannot open. @throws {SettingsError} */
  checkEncryptionKey(): Promise<void>;
  /** 32 bytes that come from the encryption key and serve this purpose alone. */
  deriveKey(purpose: string): Buffer;
  close(): Promise<void>;
}

/**
 * Opens the database: a file for this process alone, a server beside other instances. A server is not connected to; it may be away.
 *
 * @throws {SettingsError} when the file is another process's, or the encryption key is not the right one.
 */
export async function openStores(
  settings: StoreSettings,
  { clock, waits = DATABASE_WAITS }: StoreOptions,
): Promise<Stores> {
  const opened = new Opened();
  try {
    const isShared = settings.database.driver !== 'sqlite';
    if (settings.database.driver === 'sqlite') opened.add({ close: await lockedFor(settings.database.path) });
    const box = boxOf(settings);
    const database = opened.add(openDatabase(settings, clock, waits));
    // A file that cannot be opened, or is no database, shows here.
    if (settings.database.driver === 'sqlite') await openedAt(settings.database.path, database.select('SELECT 1'));
    return {
      database,
      records: new SqlRecords(database, box, new Totals(clock)),
      anchors: new SqlAnchors(database),
      lookup: new SqlTokenLookup(database, box),
      ledger: new SqlLedger(database, { isShared }),
      neighbourhood: isShared ? new SqlNeighbourhood(database) : null,
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

async function lockedFor(path: string): Promise<() => Promise<void>> {
  try {
    return await openedAt(path, lockDatabase(path));
  } catch (error) {
    throw error instanceof PathInUse ? new SettingsError([`DATABASE_URL: ${error.message}`]) : error;
  }
}

/** The database file is not for the user of this process. `code` is that of SQLite. */
export class DatabaseNotAccessible extends Error {
  override name = 'DatabaseNotAccessible';
  readonly code = 'SQLITE_CANTOPEN';
}

/** @throws {DatabaseNotAccessible} in place of SQLite's words and the file system's, which do not say what is needed. */
async function openedAt<T>(path: string, opening: Promise<T>): Promise<T> {
  try {
    return await opening;
  } catch (error) {
    if (!/SQLITE_(?:CANTOPEN|READONLY)|EACCES|EPERM|ENOENT/.test(String(error))) throw error;
    throw new DatabaseNotAccessible(
      `cannot open the database ${path}: the user of this process must be able to read and write the file, ${path}.lock and their folder`,
      { cause: error },
    );
  }
}

// What looks after the schema, the keys or the anchors does one thing after the other.
const FEW_CONNECTIONS = 2;

/** Neither claims a file nor connects to a server. @throws {SettingsError} */
export function openDatabase(
  { database, databasePoolSize: poolSize = FEW_CONNECTIONS }: Pick<StoreSettings, 'database' | 'databasePoolSize'>,
  clock: Pick<Clock, 'after'>,
  waits: Readonly<DatabaseWaits> = DATABASE_WAITS,
): Database {
  if (database.driver === 'sqlite') return new SqliteDatabase(database.path);
  return new ServerDatabase({
    dialect: database.driver,
    url: database.url,
    poolSize,
    clock,
    waits,
    certificates: certificatesFor(database.url),
  });
}

function certificatesFor(url: string): string | null {
  const path = serverAt(url)?.rootCertificate ?? null;
  try {
    return path === null ? null : readFileSync(path, 'utf8');
  } catch (error) {
    const { code = 'failed' } = error as NodeJS.ErrnoException;
    throw new SettingsError([`DATABASE_URL: cannot read the certificates in ${path}: ${code}`]);
  }
}

/** @throws {SettingsError} */
export function boxOf({ database, encryptionKey, previousEncryptionKey }: StoreSettings): SecretBox {
  return new SecretBox(encryptionKey ?? keyBeside(database), previousEncryptionKey);
}

function keyBeside(database: DatabaseAddress): Buffer {
  if (database.driver !== 'sqlite') throw new SettingsError(['ENCRYPTION_KEY is required with a shared database']);
  try {
    return keyFromFile(`${database.path}.key`, !existsSync(database.path));
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
