/** Doctor checks of the database: it is available, its schema fits this release, and the encryption key decrypts its upstream keys. */
import { counted } from '../api/formats.js';
import { readFile } from 'node:fs/promises';
import { StoreRefused } from '../core/ports.js';
import { type DatabaseAddress, type DatabaseServerAddress, serverAt } from '../../config/database-url.js';
import { readVersion } from '../../config/version.js';
import { type MigrationStatus, SchemaHistory } from '../../migrations/migrator.js';
import { SchemaTooNew } from '../../migrations/failures.js';
import { realClock } from '../process/clock.js';
import { openDatabase } from '../store/databases.js';
import { InvalidKeyFile, readEncryptionKeyFile, SecretBox } from '../store/secrets.js';
import type { Database } from '../store/sql/database.js';
import { withStoreErrors } from '../store/sql/failures.js';
import { checkEncoding, missingPrivileges } from '../store/sql/server-check.js';
import { namesById } from '../store/sql/names.js';
import { checkSealedKeys } from '../store/sql/resealing.js';
import type { ReadOnlyDatabase } from '../store/sql/sqlite-database.js';
import { keyFilesOfTrusts, projectsOfRoles } from './doctor-access.js';
import {
  type DoctorContext,
  checksWith,
  clockFinding,
  codeOf,
  messageOf,
  failed,
  type CheckGroup,
  type Finding,
  ok,
  validSettings,
  skipped,
  warning,
  INVALID_SETTINGS,
} from './doctor-finding.js';
import { growthFindings, growthOf } from './doctor-growth.js';
import { checkDatabaseFile } from './doctor-sqlite.js';

const MAX_KEYS = 1_000;

export const databaseChecks = (context: DoctorContext): CheckGroup =>
  checksWith('database', context, ['databaseDriver', 'database'], ({ database: address }, signal) =>
    database(address, context, signal),
  );

async function* database(
  address: DatabaseAddress,
  context: DoctorContext,
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  let opened: ReadOnlyDatabase | null = null;
  const closeDatabase = () => {
    void opened?.close().catch(() => undefined);
  };
  signal.addEventListener('abort', closeDatabase);
  try {
    if (address.driver === 'sqlite') opened = yield* checkDatabaseFile(address.path);
    else {
      const server = openDatabase({ database: address }, realClock);
      opened = server;
      yield* checkServer(address.url, server);
      yield* checkPrivileges(server, context);
    }
    if (!opened) return;
    const hasTables = yield* checkSchema(opened, context);
    if (hasTables) yield await keyFinding(opened, address, context);
    if (hasTables) yield* namedInAccess(opened, context);
    if (hasTables && address.driver === 'sqlite')
      yield* growthFindings(await growthOf(address.path, validSettings(context, ['workers'])?.workers ?? 1));
  } catch (error) {
    yield error instanceof StoreRefused
      ? failed('database', error.what, error.advice)
      : failed('database', messageOf(error), adviceFor(address));
  } finally {
    signal.removeEventListener('abort', closeDatabase);
    await opened?.close().catch(() => undefined);
  }
}

/** A command that tests the database without llmp. */
function adviceFor(address: DatabaseAddress): string {
  if (address.driver === 'sqlite') return `Check the file: sqlite3 'file:${address.path}?mode=ro' 'PRAGMA quick_check'`;
  const server = serverAt(address.url);
  return server ? `Test the connection: ${probe(server)}` : 'Check DATABASE_URL';
}

function probe({ driver, host, port, socket, user, database: name }: DatabaseServerAddress): string {
  const where =
    driver === 'postgres' ? `-h ${socket ?? host} -p ${port}` : socket ? `-S ${socket}` : `-h ${host} -P ${port}`;
  return driver === 'postgres'
    ? `psql ${where}${user ? ` -U ${user}` : ''} -d ${name} -c 'SELECT 1'`
    : `mariadb ${where}${user ? ` -u ${user} -p` : ''} ${name} -e 'SELECT 1'`;
}

// ---- a server

async function* checkServer(url: string, database: Database): AsyncGenerator<Finding> {
  const beganMs = Date.now();
  const [row] = await database.select<{ version: string; now: number }>(
    `SELECT version() AS version, ${database.dialect.now('0')} AS now`,
  );
  const tookMs = Date.now() - beganMs;
  const server = serverAt(url);
  const where = server?.socket ?? `${server?.host ?? ''}:${server?.port ?? ''}`;
  yield ok('database', `${nameOf(row?.version ?? '')} at ${where}, responded in ${tookMs} ms`);
  if (server && server.socket === null && server.tls === 'disable' && !/^(?:127\.|::1$|localhost$)/.test(server.host)) {
    yield warning(
      'database',
      `the connection to ${where} is not encrypted`,
      'Add ?sslmode=verify-full to DATABASE_URL',
    );
  }
  yield clockFinding('database', row?.now ?? NaN, [beganMs, Date.now()]);
}

/** What the daemon would find out when it writes. */
async function* checkPrivileges(database: Database, context: DoctorContext): AsyncGenerator<Finding> {
  await checkEncoding(database);
  const { pending } = await withStoreErrors(new SchemaHistory(database, readVersion()).status());
  const isAutomatic = validSettings(context, ['autoMigrate'])?.autoMigrate ?? true;
  const missing = await missingPrivileges(database, pending.length === 0 || !isAutomatic);
  if (missing) yield failed('privileges', missing.what, missing.advice);
}

/** `PostgreSQL 15.8 (Debian…) on x86_64…`, `10.11.6-MariaDB-0+deb12u1` or `8.0.39`. */
function nameOf(version: string): string {
  if (version.startsWith('PostgreSQL')) return version.split(' ').slice(0, 2).join(' ');
  const [number = ''] = version.split('-');
  return `${/mariadb/i.test(version) ? 'MariaDB' : 'MySQL'} ${number}`;
}

// ---- schema and encryption key

/** @returns whether the database has tables. */
async function* checkSchema(database: ReadOnlyDatabase, context: DoctorContext): AsyncGenerator<Finding, boolean> {
  const history = new SchemaHistory(database, readVersion());
  const status = await withStoreErrors(history.status());
  try {
    await withStoreErrors(history.refuseNewerSchema());
  } catch (error) {
    if (!(error instanceof SchemaTooNew)) throw error;
    yield failed(SCHEMA, error.message, 'Install that release, or restore a backup from before the migration');
    return true;
  }
  yield schemaFinding(
    { ...status, newer: await withStoreErrors(history.newer()) },
    validSettings(context, ['autoMigrate'])?.autoMigrate ?? true,
    `llmp migrate up --direct${context.envFileOption}`,
  );
  return status.current !== null;
}

const SCHEMA = 'schema';

/** @param migrate the command that applies the pending migrations. */
export function schemaFinding(
  { current, pending, newer }: Pick<MigrationStatus, 'current' | 'pending'> & { newer: readonly string[] },
  isAutomatic: boolean,
  migrate: string,
): Finding {
  const release = `llmp ${readVersion()}`;
  const missing = `${counted(pending.length, 'pending migration')}: ${pending.join(', ')}`;
  if (newer.length > 0) return ok(SCHEMA, `newer than ${release}, which can use it: ${newer.join(', ')}`);
  if (pending.length === 0) return ok(SCHEMA, `${current ?? ''}, no pending migrations`);
  if (!isAutomatic) {
    const which = current === null ? 'empty' : `older than ${release}`;
    return failed(SCHEMA, `${which}, and AUTO_MIGRATE=false: ${missing}`, migrate);
  }
  if (current === null) return ok(SCHEMA, 'empty; the first start creates the tables');
  return warning(SCHEMA, `older than ${release}, whose next start migrates it: ${missing}`, migrate);
}

/** What trusts and roles name, and is not there. */
async function* namedInAccess(database: ReadOnlyDatabase, context: DoctorContext): AsyncGenerator<Finding> {
  const trusts = await database.select<{ file: string; trusts: number }>(
    `SELECT t.jwks_file AS file, COUNT(*) AS trusts FROM trusts t
     WHERE t.is_active = TRUE AND t.jwks_file IS NOT NULL GROUP BY t.jwks_file ORDER BY t.jwks_file`,
  );
  yield* keyFilesOfTrusts(trusts, context);
  yield* projectsOfRoles(context, async (ids) => (await namesById(database, [], ids)).projects);
}

async function keyFinding(
  database: ReadOnlyDatabase,
  address: DatabaseAddress,
  context: DoctorContext,
): Promise<Finding> {
  const check = 'encryption key';
  const keys = validSettings(context, ['databaseDriver', 'database', 'encryptionKey', 'previousEncryptionKey']);
  if (!keys) return skipped(check, INVALID_SETTINGS);
  const given = keys.encryptionKey ?? (await readKeyFile(address));
  if (!Buffer.isBuffer(given)) return given;
  const box = new SecretBox(given, keys.previousEncryptionKey);
  const { opened, unreadable, isPreviousNeeded } = await checkSealedKeys(database, box, MAX_KEYS);
  if (unreadable.length > 0) {
    const [first = ''] = unreadable;
    return failed(
      check,
      `cannot decrypt the upstream keys of ${unreadable.length} of ${counted(unreadable.length + opened, 'project')}, such as ${first}`,
      'Restore the original ENCRYPTION_KEY or key file. If you changed the key, set ENCRYPTION_KEY_PREVIOUS to the old one',
    );
  }
  if (isPreviousNeeded) {
    return warning(
      check,
      'some upstream keys are still encrypted with the previous key',
      `llmp migrate rekey${context.envFileOption}`,
    );
  }
  return ok(
    check,
    opened === 0
      ? 'present; no upstream key is encrypted yet'
      : `decrypts the upstream keys of ${counted(opened, 'project')}`,
  );
}

/** Reads the key file next to an SQLite database. With a database server the key is a setting. */
async function readKeyFile(address: DatabaseAddress): Promise<Buffer | Finding> {
  const check = 'encryption key';
  if (address.driver !== 'sqlite') return skipped(check, INVALID_SETTINGS);
  const path = `${address.path}.key`;
  try {
    await readFile(path); // Asynchronous, so that a hanging file system does not block the other checks.
    return readEncryptionKeyFile(path);
  } catch (error) {
    const why = error instanceof InvalidKeyFile ? error.message : `cannot read ${path}: ${codeOf(error)}`;
    return failed(check, why, `Restore ${path} from a backup, or set ENCRYPTION_KEY`);
  }
}
