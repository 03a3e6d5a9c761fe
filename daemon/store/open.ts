import { existsSync } from 'node:fs';
import type { DatabaseAddress } from '../../config/database-url.js';
import { type Settings, SettingsError } from '../../config/settings.js';
import type { Clock, Ledger, ClusterStore, RecordStore, StoreRefused, TokenLookup, UsageStore } from '../core/ports.js';
import { PathInUse } from './lock.js';
import { ResourceStack } from './resource-stack.js';
import { SqliteUnavailable } from './sqlite-available.js';
import type { AnchorStore } from './audit-file/anchors.js';
import { InvalidKeyFile, readOrCreateKeyFile, SecretBox } from './secrets.js';
import { AttendedDatabase, type OnWaiting } from './sql/attended-database.js';
import { SqlAnchors } from './sql/anchors.js';
import type { Database } from './sql/database.js';
import { SqlClusterStore } from './sql/instances.js';
import { SqlLedger } from './sql/ledger.js';
import { figuresOfPages } from './sql/project-figures.js';
import { SqlRecords } from './sql/records.js';
import { lockDatabase } from './sql/sqlite.js';
import { SqliteDatabase } from './sql/sqlite-database.js';
import { SqlTokenLookup } from './sql/tokens.js';
import { totalsOfLists } from './sql/lists.js';
import { DATABASE_TIMEOUTS, type DatabaseTimeouts } from './sql/database.js';
import { SqlUsage } from './sql/usage.js';

export type StoreSettings = Pick<Settings, 'database' | 'encryptionKey'> &
  Partial<Pick<Settings, 'previousEncryptionKey' | 'databasePoolSize'>>;

export interface StoreOptions {
  clock: Pick<Clock, 'after' | 'monotonic'>;
  /** Timeouts for a database server. Default: `DATABASE_TIMEOUTS`. */
  timeouts?: Readonly<DatabaseTimeouts>;
  /** A worker uses the file that its primary has locked. Default: `alone`. */
  role?: 'alone' | 'primary' | 'worker';
  /** Whether it uses Redis. */
  hasRedis?: boolean;
  /** Called for each statement that a server will refuse until an operator corrects something. */
  onRefused?: ((refused: StoreRefused) => void) | undefined;
  /** Awaited after each commit of a change. */
  afterChange?: () => Promise<void>;
  /** In a primary: called while a statement takes long, because a worker may hold locks. */
  onWaiting?: OnWaiting;
}

export interface Stores {
  database: Database;
  records: RecordStore;
  anchors: AnchorStore;
  lookup: TokenLookup;
  ledger: Ledger;
  /** Null for a SQLite file that only this process uses. */
  clusterStore: ClusterStore | null;
  usage: UsageStore;
  /** Checks that this process can decrypt the upstream keys in the database. Call it after the migrations. @throws {SettingsError} */
  checkEncryptionKey(): Promise<void>;
  /** Derives a 32-byte key for one purpose from the encryption key. */
  deriveKey(purpose: string): Buffer;
  close(): Promise<void>;
}

/**
 * Opens the database: a SQLite file that only this daemon uses, or a server that is shared with other instances. Does not connect
 * to a server, which may be unavailable at this time.
 *
 * @throws {SettingsError} when another process uses the file, or the encryption key is not the right one.
 */
export async function openStores(
  settings: StoreSettings,
  {
    clock,
    timeouts = DATABASE_TIMEOUTS,
    role = 'alone',
    hasRedis = false,
    onRefused,
    afterChange,
    onWaiting,
  }: StoreOptions,
): Promise<Stores> {
  const opened = new ResourceStack();
  try {
    const isServer = settings.database.driver !== 'sqlite';
    if (settings.database.driver === 'sqlite' && role !== 'worker')
      opened.add({ close: await lockForProcess(settings.database.path) });
    const box = secretBoxFor(settings);
    const database = opened.add(await databaseFor(settings, { clock, timeouts, onRefused }));
    const attended = role === 'primary' && onWaiting ? new AttendedDatabase(database, clock, onWaiting) : database;
    // Fails here if the file cannot be opened or is not a database.
    if (settings.database.driver === 'sqlite')
      await withAccessError(settings.database.path, database.prioritySelect('SELECT 1'));
    return {
      database,
      records: new SqlRecords(attended, box, totalsOfLists(clock), figuresOfPages(clock), afterChange),
      anchors: new SqlAnchors(attended),
      lookup: new SqlTokenLookup(attended, box),
      ledger: new SqlLedger(attended, {
        isShared: isServer || role === 'worker',
        isWorker: role === 'worker',
        isApart: !hasRedis,
      }),
      clusterStore: isServer || role !== 'alone' ? new SqlClusterStore(attended) : null,
      usage: new SqlUsage(attended),
      checkEncryptionKey: () => checkEncryptionKey(database, box),
      deriveKey: (purpose) => box.derive(purpose),
      close: () => opened.close(),
    };
  } catch (error) {
    await opened.close().catch(() => undefined);
    throw error;
  }
}

/** Only a database server needs Sequelize at once. */
async function databaseFor(settings: StoreSettings, { clock, timeouts, onRefused }: StoreOptions): Promise<Database> {
  const { database } = settings;
  if (database.driver === 'sqlite') return new SqliteDatabase(database.path);
  const { openDatabase } = await import('./databases.js');
  return openDatabase(settings, clock, timeouts, onRefused);
}

async function lockForProcess(path: string): Promise<() => Promise<void>> {
  try {
    return await withAccessError(path, lockDatabase(path));
  } catch (error) {
    if (error instanceof PathInUse || error instanceof SqliteUnavailable)
      throw new SettingsError([`DATABASE_URL: ${error.message}`]);
    throw error;
  }
}

/** The user of this process has no access to the database file. `code` is the SQLite error code. */
export class DatabaseNotAccessible extends Error {
  override name = 'DatabaseNotAccessible';
  readonly code = 'SQLITE_CANTOPEN';
}

/**
 * @throws {DatabaseNotAccessible} in place of the error of SQLite or the file system, which does not say which permissions are
 * needed.
 */
async function withAccessError<T>(path: string, opening: Promise<T>): Promise<T> {
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

/** @throws {SettingsError} */
export function secretBoxFor({ database, encryptionKey, previousEncryptionKey }: StoreSettings): SecretBox {
  return new SecretBox(encryptionKey ?? keyFromKeyFile(database), previousEncryptionKey);
}

function keyFromKeyFile(database: DatabaseAddress): Buffer {
  if (database.driver !== 'sqlite') throw new SettingsError(['ENCRYPTION_KEY is required with a shared database']);
  try {
    return readOrCreateKeyFile(`${database.path}.key`, !existsSync(database.path));
  } catch (error) {
    throw error instanceof InvalidKeyFile ? new SettingsError([`ENCRYPTION_KEY: ${error.message}`]) : error;
  }
}

async function checkEncryptionKey(database: Database, box: SecretBox): Promise<void> {
  const sealedWith = await database.select<{ id: string }>('SELECT DISTINCT api_key_id AS id FROM projects');
  if (sealedWith.some(({ id }) => !box.keyIds.includes(id))) {
    throw new SettingsError([
      'ENCRYPTION_KEY: the upstream keys in the database are encrypted with another key. If that is the previous key, set ENCRYPTION_KEY_PREVIOUS',
    ]);
  }
}
