/** The two databases of `llmp migrate copy`: which they are, and how they are opened. */
import { closeSync, existsSync, openSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type DatabaseAddress, databaseAddress, serverAt } from '../../config/database-url.js';
import type { Environment } from '../../config/settings.js';
import { EXIT } from '../api/vocabulary.js';
import { realClock } from '../process/clock.js';
import { openDatabase } from '../store/databases.js';
import { PathInUse, withoutLinks } from '../store/lock.js';
import { secretBoxFor } from '../store/open.js';
import { shareOwner } from '../store/owner.js';
import type { ResourceStack } from '../store/resource-stack.js';
import { readEncryptionKeyFile, SecretBox, writeKeyFile } from '../store/secrets.js';
import { type Database, DATABASE_TIMEOUTS, type DatabaseTimeouts, type Reader } from '../store/sql/database.js';
import { lockDatabase } from '../store/sql/sqlite.js';
import { openSqliteReader, SqliteDatabase } from '../store/sql/sqlite-database.js';
import { requireSqlite } from '../store/sqlite-available.js';
import { fromSettings, OperatorError, refuseMissing } from './operator-error.js';

/** The copy was refused before it changed anything. */
export const refused = (message: string, cause?: unknown) => new OperatorError(EXIT.notFound, message, cause);

const FOR_COPY = ['databaseDriver', 'database', 'encryptionKey', 'previousEncryptionKey'] as const;

/** Longer, because only this process waits, and for much at once. */
const TIMEOUTS: Readonly<DatabaseTimeouts> = {
  ...DATABASE_TIMEOUTS,
  connectMs: 10_000,
  priorityConnectMs: 25_000,
  probeMs: 20_000,
  // To count the rows of a large table, or to make an index of it.
  statementMs: { usual: 60_000, long: 3_600_000 },
  serverStatementMs: 3_600_000,
  idleTransactionMs: 60_000,
};
export interface PlacesRequest {
  env: Environment;
  envFile: string | undefined;
  /** The other database: its URL, or a settings file that names it and perhaps another encryption key. */
  to: { url: string } | { envFile: string };
}

export interface Boxes {
  source: SecretBox;
  target: SecretBox;
}

export interface Places {
  from: DatabaseAddress;
  to: DatabaseAddress;
  boxes: Boxes;
  /** Writes the key file of a new SQLite database, for which the encryption key is not a setting. */
  writeKey: () => void;
}

export function placesOf({ env, envFile, to }: PlacesRequest): Places {
  const source = fromSettings(env, envFile, FOR_COPY, (settings) => {
    const { database, encryptionKey } = settings;
    refuseMissing(database);
    if (database.driver === 'sqlite') requireSqlite();
    const box = secretBoxFor(settings);
    const key = encryptionKey ?? (database.driver === 'sqlite' ? readEncryptionKeyFile(`${database.path}.key`) : null);
    return { database, key, hasKeyFile: encryptionKey === undefined, box };
  });
  const from = source.database;
  if ('envFile' in to) {
    const target = fromSettings({}, to.envFile, FOR_COPY, (settings) => {
      refuseSame(from, settings.database);
      if (settings.database.driver === 'sqlite') requireSqlite();
      return { database: settings.database, box: secretBoxFor(settings) };
    });
    return { from, to: target.database, boxes: { source: source.box, target: target.box }, writeKey: () => undefined };
  }
  const address = databaseAddress.parse(to.url);
  // Not shown: it may contain a password.
  if (address === undefined)
    throw new OperatorError(EXIT.usage, `--to is not the URL of a database. It can be ${databaseAddress.accepts}`);
  refuseSame(from, address);
  if (address.driver === 'sqlite') requireSqlite();
  const keyFile = address.driver === 'sqlite' && source.hasKeyFile ? `${address.path}.key` : null;
  const key = keyFile !== null && existsSync(keyFile) ? readEncryptionKeyFile(keyFile) : source.key;
  if (key === null) throw new OperatorError(EXIT.configuration, 'ENCRYPTION_KEY is not set');
  const writeKey = () => {
    if (keyFile !== null && !existsSync(keyFile)) writeKeyFile(keyFile, key);
  };
  return { from, to: address, boxes: { source: source.box, target: new SecretBox(key) }, writeKey };
}

function refuseSame(from: DatabaseAddress, to: DatabaseAddress): void {
  const placeOf = (address: DatabaseAddress) => {
    if (address.driver === 'sqlite') return resolve(address.path);
    const { host, port, socket, database } = serverAt(address.url) ?? {};
    return JSON.stringify([address.driver, host, port, socket, database]);
  };
  if (placeOf(from) === placeOf(to))
    throw refused('the new database is the one that DATABASE_URL names. Name another one');
}

/** Without the user and the password. */
export function nameOf(address: DatabaseAddress): string {
  if (address.driver === 'sqlite') return resolve(address.path);
  const server = serverAt(address.url);
  return `${address.driver}://${server?.socket ?? `${server?.host ?? ''}:${server?.port ?? ''}`}/${server?.database ?? ''}`;
}

export type Source = Reader & { close(): Promise<void> };

export async function openSource(address: DatabaseAddress, isPrepare: boolean, opened: ResourceStack): Promise<Source> {
  if (address.driver !== 'sqlite') return openDatabase({ database: address }, realClock, TIMEOUTS);
  if (isPrepare) return openSqliteReader(address.path, 'while others write');
  opened.add({
    close: await locked(
      address.path,
      'Stop the daemon, or first copy what never changes again while it runs: llmp migrate copy --prepare',
    ),
  });
  return new SqliteDatabase(address.path);
}

export async function openTarget(address: DatabaseAddress, opened: ResourceStack): Promise<Database> {
  if (address.driver === 'sqlite') {
    opened.add({ close: await locked(address.path, 'Stop that process, or name another path') });
    const file = await withoutLinks(address.path);
    if (!existsSync(file)) {
      closeSync(openSync(file, 'wx', 0o600));
      shareOwner(file, dirname(file));
    }
  }
  return openDatabase({ database: address }, realClock, TIMEOUTS);
}

async function locked(path: string, advice: string): Promise<() => Promise<void>> {
  try {
    return await lockDatabase(path);
  } catch (error) {
    if (error instanceof PathInUse) throw refused(`${path} is in use by another llmp process. ${advice}`, error);
    throw error;
  }
}
