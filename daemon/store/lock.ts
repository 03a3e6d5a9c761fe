import { createServer } from 'node:net';
import { access, constants, lstat, readlink, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import sqlite3 from 'sqlite3';

/** Another process has it. */
export class PathInUse extends Error {
  override name = 'PathInUse';
}

/**
 * Claims a path for this process: an exclusive transaction of SQLite on a small file beside it, held for life. The kernel
 * lets go of it when the process dies, however it dies; a file with a process id in it would not. Node has no locks of its
 * own.
 *
 * @returns releases it.
 * @throws {PathInUse}
 */
export async function lockPath(path: string): Promise<() => Promise<void>> {
  const connection = await opened(path, sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE);
  try {
    // SQLite opens a file that this user may not write for reading alone, and its exclusive transaction then excludes nobody.
    await access(`${path}.lock`, constants.W_OK);
    await execute(connection, 'BEGIN EXCLUSIVE');
  } catch (error) {
    await closed(connection);
    if (codeOf(error) !== 'SQLITE_BUSY') throw error;
    throw new PathInUse(`${path} is in use by another llmp process`, { cause: error });
  }
  return () => closed(connection);
}

/**
 * Claims a file for this process under whatever names it has: a hard link, or a mount of it elsewhere, leads to the same inode. The
 * claim is an abstract socket of Linux, which is on no disk, and goes with the process. Where there are none, and in another
 * network namespace, only `lockPath` excludes.
 *
 * @returns releases it.
 * @throws {PathInUse}
 */
export function lockInode(path: string, { dev, ino }: { dev: bigint; ino: bigint }): Promise<() => Promise<void>> {
  const nothing = () => Promise.resolve();
  if (process.platform !== 'linux') return Promise.resolve(nothing);
  return new Promise((resolved, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.unref();
    // For as long as it listens: anybody on this machine can connect, and a connection that cannot be accepted is an error, too.
    server.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') resolved(nothing);
      else reject(new PathInUse(`${path} is in use by another llmp process`, { cause: error }));
    });
    server.listen({ path: `\0llmp-file-${dev}-${ino}` }, () => {
      resolved(
        () =>
          new Promise((done) =>
            server.close(() => {
              done();
            }),
          ),
      );
    });
  });
}

/**
 * Claims a file for this process under whatever names it has. One that is not there yet has no other names than links to its path; it is
 * claimed by itself from the next time on.
 *
 * @returns releases it.
 * @throws {PathInUse}
 */
export async function lockFile(path: string): Promise<() => Promise<void>> {
  const unlock = await lockPath(await withoutLinks(path));
  try {
    const found = await stat(path, { bigint: true }).catch(() => null);
    const release = found?.isFile() ? await lockInode(path, found) : () => Promise.resolve();
    return async () => {
      await release();
      await unlock();
    };
  } catch (error) {
    await unlock();
    throw error;
  }
}

const MOST_LINKS = 40;

/** The path of a file without symbolic links, whether the file is there yet or not. Its folder must be. */
export async function withoutLinks(path: string): Promise<string> {
  let at = path;
  for (let links = 0; links < MOST_LINKS; links++) {
    at = join(await realpath(dirname(at)), basename(at));
    const isLink = await lstat(at).then(
      (found) => found.isSymbolicLink(),
      () => false,
    );
    if (!isLink) return at;
    at = resolve(dirname(at), await readlink(at));
  }
  throw new Error(`${path} leads through too many symbolic links`);
}

/** Whether a process has claimed it, this one included. Claims nothing, and makes no file. */
export async function isLocked(path: string): Promise<boolean> {
  const connection = await withoutLinks(path)
    .then((file) => opened(file, sqlite3.OPEN_READONLY))
    .catch(() => null);
  if (!connection) return false; // Nobody ever claimed it.
  try {
    await execute(connection, 'PRAGMA busy_timeout = 0; SELECT COUNT(*) FROM sqlite_schema');
    return false;
  } catch (error) {
    return codeOf(error) === 'SQLITE_BUSY';
  } finally {
    await closed(connection);
  }
}

function opened(path: string, mode: number): Promise<sqlite3.Database> {
  return new Promise((resolve, reject) => {
    const connection = new sqlite3.Database(`${path}.lock`, mode, (error) => {
      if (error) reject(error);
      else resolve(connection);
    });
  });
}

function execute(connection: sqlite3.Database, sql: string): Promise<void> {
  return new Promise((resolve, reject) => {
    connection.exec(sql, (error) => {
      if (error) reject(error);
      else resolve();
    });
  });
}

function closed(connection: sqlite3.Database): Promise<void> {
  return new Promise((resolve) => {
    connection.close(() => {
      resolve();
    });
  });
}

const codeOf = (error: unknown) => (error as { code?: string }).code;
