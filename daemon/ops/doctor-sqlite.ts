/** What can be wrong with a database that is a file: with it, with what is beside it, and with what it is on. */
import { constants, stat, statfs } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isLocked } from '../store/lock.js';
import { openSqliteReader, type ReadOnlyDatabase } from '../store/sql/sqlite-reader.js';
import { codeOf, failed, type Finding, ok, warning } from './doctor-finding.js';
import { existingFolder, may, roomIn } from './doctor-folder.js';
import { modeFinding } from './doctor-settings.js';

// From linux/magic.h. A write-ahead log needs memory that all who read share.
const NETWORK: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
]);

/** @returns null when there is nothing in it to be looked at. */
export async function* lookAtFile(path: string): AsyncGenerator<Finding, ReadOnlyDatabase | null> {
  const found = await stat(path).catch((error: unknown) => codeOf(error));
  if (typeof found === 'string' && found !== 'ENOENT') {
    yield failed('database', `${path}: ${found}`, `ls -l ${path}`);
    return null;
  }
  if (typeof found === 'string') {
    yield ok('database', `${resolve(path)} is not there yet: it is made at the first start`);
    yield* lookAtFolder(path);
    return null;
  }
  yield modeFinding(path, 'the database', true, found.mode, 'database');
  const key = await stat(`${path}.key`).catch(() => null);
  if (key) yield modeFinding(`${path}.key`, 'its key file', true, key.mode, 'database');
  yield* lookAtFolder(path);
  if (!(await may(path, constants.R_OK | constants.W_OK))) {
    yield failed('database', `${path} cannot be read and written by this user`, `ls -l ${path}`);
    return null;
  }
  return yield* open(path, found.size);
}

async function* open(path: string, bytes: number): AsyncGenerator<Finding, ReadOnlyDatabase> {
  const database = openSqliteReader(path);
  try {
    const [row] = await database.select<{ version: string }>(
      'SELECT sqlite_version() AS version, COUNT(*) AS tables FROM sqlite_schema',
    );
    const size = bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} KB` : `${Math.round(bytes / 1e6)} MB`;
    const holder = (await isLocked(path)) ? ', in use by a running llmp' : ', in use by nobody';
    yield ok('database', `SQLite ${row?.version ?? ''}, ${resolve(path)}, ${size}${holder}`);
    return database;
  } catch (error) {
    await database.close().catch(() => undefined);
    throw error;
  }
}

/** Where it is, or, when that is not made yet, where it will be. */
async function* lookAtFolder(path: string): AsyncGenerator<Finding> {
  const folder = await existingFolder(path);
  yield await roomIn('disk', folder);
  const network = NETWORK.get((await statfs(folder)).type);
  if (network) {
    const evidence = `${folder} is on ${network}, where SQLite may lose what it wrote`;
    yield warning('disk', evidence, 'Move it to a disk of this machine, or use a server: DB_DRIVER=postgres');
  }
}
