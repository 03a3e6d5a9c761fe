/** Doctor checks of an SQLite database: the file, the files next to it, and its disk. */
import { bytes } from '../api/formats.js';
import { constants, stat, statfs } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isLocked } from '../store/lock.js';
import { whyNoSqlite } from '../store/sqlite-available.js';
import { openSqliteReader, type ReadOnlyDatabase } from '../store/sql/sqlite-database.js';
import { codeOf, failed, type Finding, ok, warning } from './doctor-finding.js';
import { existingFolder, hasAccess, freeSpaceFinding } from './doctor-files.js';
import { modeFinding } from './doctor-settings.js';

// From linux/magic.h. The write-ahead log needs memory that all processes share, which network file systems do not provide.
const NETWORK: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
]);

/** @returns null if the database cannot be checked further. */
export async function* checkDatabaseFile(path: string): AsyncGenerator<Finding, ReadOnlyDatabase | null> {
  const whyUnavailable = whyNoSqlite();
  if (whyUnavailable !== null) {
    const [evidence = '', ...advice] = whyUnavailable.split('. ');
    yield failed('database', evidence, advice.join('. '));
    return null;
  }
  const found = await stat(path).catch((error: unknown) => codeOf(error));
  if (typeof found === 'string' && found !== 'ENOENT') {
    yield failed('database', `cannot read ${path}: ${found}`, `Check path and permissions: ls -l ${path}`);
    return null;
  }
  if (typeof found === 'string') {
    yield ok('database', `${resolve(path)} does not exist yet; the first start creates it`);
    yield* checkDatabaseFolder(path);
    return null;
  }
  yield modeFinding(path, 'the database', true, found.mode, 'database');
  const key = await stat(`${path}.key`).catch(() => null);
  if (key) yield modeFinding(`${path}.key`, 'the key file', true, key.mode, 'database');
  yield* checkDatabaseFolder(path);
  if (!(await hasAccess(path, constants.R_OK | constants.W_OK))) {
    yield failed(
      'database',
      `${path} cannot be read and written by this user`,
      `Grant read and write permission. Check with: ls -l ${path}`,
    );
    return null;
  }
  return yield* open(path, found.size);
}

async function* open(path: string, size: number): AsyncGenerator<Finding, ReadOnlyDatabase> {
  const database = openSqliteReader(path);
  try {
    const [row] = await database.select<{ version: string }>(
      'SELECT sqlite_version() AS version, COUNT(*) AS tables FROM sqlite_schema',
    );
    const use = (await isLocked(path)) ? ', in use by a running llmp' : ', not in use';
    yield ok('database', `SQLite ${row?.version ?? ''}, ${resolve(path)}, ${bytes(size)}${use}`);
    return database;
  } catch (error) {
    await database.close().catch(() => undefined);
    throw error;
  }
}

/** Checks the folder of the database, or its nearest ancestor that exists. */
async function* checkDatabaseFolder(path: string): AsyncGenerator<Finding> {
  const folder = await existingFolder(path);
  yield await freeSpaceFinding('disk', folder);
  const network = NETWORK.get((await statfs(folder)).type);
  if (network) {
    const evidence = `${folder} is on ${network}, where SQLite can lose data`;
    yield warning('disk', evidence, 'Move the database to a local disk, or use a database server: DB_DRIVER=postgres');
  }
}
