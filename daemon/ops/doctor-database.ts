/** Whether the database is there, its schema is one for this build, and the encryption key opens what is sealed in it. */
import { readFile } from 'node:fs/promises';
import { type DatabaseAddress, type DatabaseServerAddress, serverAt } from '../../config/database-url.js';
import { readVersion } from '../../config/version.js';
import { Migrator, SchemaTooNew } from '../../migrations/migrator.js';
import { realClock } from '../process/clock.js';
import { openDatabase } from '../store/open.js';
import { BadKeyFile, keyIn, SecretBox } from '../store/secrets.js';
import type { Database } from '../store/sql/database.js';
import { explained } from '../store/sql/failures.js';
import { trySealed } from '../store/sql/resealing.js';
import type { ReadOnlyDatabase } from '../store/sql/sqlite-reader.js';
import {
  type Around,
  clockFinding,
  codeOf,
  failed,
  type Family,
  type Finding,
  ok,
  partOf,
  skipped,
  warning,
  WRONG_SETTINGS,
} from './doctor-finding.js';
import { lookAtFile } from './doctor-sqlite.js';

const MOST_KEYS = 1_000;

export function databaseFamily(around: Around): Family {
  return { check: 'database', look: (signal) => database(around, signal) };
}

async function* database(around: Around, signal: AbortSignal): AsyncGenerator<Finding> {
  const address = partOf(around, ['databaseDriver', 'database'])?.database;
  if (!address) {
    yield skipped('database', WRONG_SETTINGS);
    return;
  }
  let opened: ReadOnlyDatabase | null = null;
  const letGo = () => {
    void opened?.close().catch(() => undefined);
  };
  signal.addEventListener('abort', letGo);
  try {
    if (address.driver === 'sqlite') opened = yield* lookAtFile(address.path);
    else {
      const server = openDatabase({ database: address }, realClock);
      opened = server;
      yield* lookAtServer(address.url, server);
    }
    if (!opened) return;
    const hasTables = yield* lookAtSchema(opened, around);
    if (hasTables) yield await keyFinding(opened, address, around);
  } catch (error) {
    yield failed('database', messageOf(error), adviceFor(address));
  } finally {
    signal.removeEventListener('abort', letGo);
    await opened?.close().catch(() => undefined);
  }
}

const messageOf = (error: unknown) => (error instanceof Error && error.message !== '' ? error.message : codeOf(error));

/** What asks the same database without llmp. */
function adviceFor(address: DatabaseAddress): string {
  if (address.driver === 'sqlite') return `sqlite3 'file:${address.path}?mode=ro' 'PRAGMA quick_check'`;
  const server = serverAt(address.url);
  return server ? probe(server) : 'Check DATABASE_URL';
}

function probe({ driver, host, port, socket, user, database: name }: DatabaseServerAddress): string {
  const where =
    driver === 'postgres' ? `-h ${socket ?? host} -p ${port}` : socket ? `-S ${socket}` : `-h ${host} -P ${port}`;
  return driver === 'postgres'
    ? `psql ${where}${user ? ` -U ${user}` : ''} -d ${name} -c 'SELECT 1'`
    : `mariadb ${where}${user ? ` -u ${user} -p` : ''} ${name} -e 'SELECT 1'`;
}

// ---- a server

async function* lookAtServer(url: string, database: Database): AsyncGenerator<Finding> {
  const beganMs = Date.now();
  const [row] = await database.select<{ version: string; now: number }>(
    `SELECT version() AS version, ${database.dialect.now('0')} AS now`,
  );
  const tookMs = Date.now() - beganMs;
  const server = serverAt(url);
  const where = server?.socket ?? `${server?.host ?? ''}:${server?.port ?? ''}`;
  yield ok('database', `${nameOf(row?.version ?? '')} at ${where}, answered in ${tookMs} ms`);
  if (server && server.socket === null && server.tls === 'disable' && !/^(?:127\.|::1$|localhost$)/.test(server.host)) {
    yield warning(
      'database',
      `the connection to ${where} is not encrypted`,
      'Add ?sslmode=verify-full to DATABASE_URL',
    );
  }
  yield clockFinding('database', row?.now ?? NaN, [beganMs, Date.now()]);
}

/** `PostgreSQL 15.8 (Debian…) on x86_64…`, `10.11.6-MariaDB-0+deb12u1` or `8.0.39`. */
function nameOf(version: string): string {
  if (version.startsWith('PostgreSQL')) return version.split(' ').slice(0, 2).join(' ');
  const [number = ''] = version.split('-');
  return `${/mariadb/i.test(version) ? 'MariaDB' : 'MySQL'} ${number}`;
}

// ---- what is in it

/** @returns whether there is anything in it. */
async function* lookAtSchema(database: ReadOnlyDatabase, around: Around): AsyncGenerator<Finding, boolean> {
  const check = 'schema';
  const migrator = new Migrator(database, readVersion());
  const migrate = `llmp migrate up --direct${around.withFile}`;
  const { current, pending } = await explained(migrator.status());
  try {
    await explained(migrator.refuseNewerSchema());
  } catch (error) {
    if (!(error instanceof SchemaTooNew)) throw error;
    yield failed(check, error.message, 'Install that release, or restore a backup from before it');
    return true;
  }
  const isAutomatic = partOf(around, ['autoMigrate'])?.autoMigrate ?? true;
  if (pending.length === 0) yield ok(check, `${current ?? ''}, nothing pending`);
  else if (!isAutomatic)
    yield failed(check, `${pending.length} pending, and AUTO_MIGRATE=false: ${pending.join(', ')}`, migrate);
  else if (current === null) yield ok(check, 'empty: the tables are made at the first start');
  else yield warning(check, `${pending.length} pending until the next start: ${pending.join(', ')}`, migrate);
  return current !== null;
}

async function keyFinding(database: ReadOnlyDatabase, address: DatabaseAddress, around: Around): Promise<Finding> {
  const check = 'encryption key';
  const keys = partOf(around, ['databaseDriver', 'database', 'encryptionKey', 'previousEncryptionKey']);
  if (!keys) return skipped(check, WRONG_SETTINGS);
  const given = keys.encryptionKey ?? (await keyBeside(address));
  if (!Buffer.isBuffer(given)) return given;
  const box = new SecretBox(given, keys.previousEncryptionKey);
  const { opened, unreadable, isPreviousNeeded } = await trySealed(database, box, MOST_KEYS);
  if (unreadable.length > 0) {
    const [first = ''] = unreadable;
    return failed(
      check,
      `does not open the upstream keys of ${unreadable.length} of ${unreadable.length + opened} projects, such as ${first}`,
      'Set ENCRYPTION_KEY, or the key file beside the database, to what it was; the key before goes into ENCRYPTION_KEY_PREVIOUS',
    );
  }
  if (isPreviousNeeded) {
    return warning(
      check,
      'some upstream keys are still sealed with the one before',
      `llmp migrate rekey${around.withFile}`,
    );
  }
  return ok(
    check,
    opened === 0 ? 'there is one, and nothing sealed with it yet' : `opens the upstream keys of ${opened} projects`,
  );
}

/** Of SQLite; a server's is a setting. */
async function keyBeside(address: DatabaseAddress): Promise<Buffer | Finding> {
  const check = 'encryption key';
  if (address.driver !== 'sqlite') return skipped(check, WRONG_SETTINGS);
  const path = `${address.path}.key`;
  try {
    await readFile(path); // So that a file system that stands still holds up nobody else.
    return keyIn(path);
  } catch (error) {
    const why = error instanceof BadKeyFile ? error.message : `${path}: ${codeOf(error)}`;
    return failed(check, why, `Restore ${path} from the backup, or set ENCRYPTION_KEY`);
  }
}
