import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { access, constants, lstat, open, readlink, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import sqlite3 from 'sqlite3';
import { shareOwner } from './owner.js';
import { whyNoSqlite } from './sqlite-available.js';

/** The path or file is locked by another process. */
export class PathInUse extends Error {
  override name = 'PathInUse';
}

/**
 * Locks a path for this process with an exclusive SQLite transaction on a small file next to it (`PATH.lock`). The kernel releases
 * the lock when the process dies, however it dies, which a PID file cannot do. Node.js has no file locks of its own.
 *
 * @returns a function that releases the lock.
 * @throws {PathInUse}
 */
export async function lockPath(path: string): Promise<() => Promise<void>> {
  if (whyNoSqlite() !== null && process.platform === 'linux') return lockWithoutSqlite(path);
  const isNew = !existsSync(`${path}.lock`);
  const connection = await openLockFile(path, sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE);
  try {
    if (isNew) shareOwner(`${path}.lock`, dirname(path));
    // SQLite opens a file without write permission as read-only, and an exclusive transaction on it excludes no other process.
    await access(`${path}.lock`, constants.W_OK);
    await execute(connection, 'BEGIN EXCLUSIVE');
  } catch (error) {
    await close(connection);
    if (codeOf(error) !== 'SQLITE_BUSY') throw error;
    throw inUse(path, error);
  }
  return () => close(connection);
}

/**
 * For audit files of a daemon that uses a database server, in an installation without SQLite. Processes in another network namespace are
 * not excluded.
 */
async function lockWithoutSqlite(path: string): Promise<() => Promise<void>> {
  const file = await open(`${path}.lock`, 'a', 0o600);
  try {
    return await lockInode(path, await file.stat({ bigint: true }));
  } finally {
    await file.close();
  }
}

/**
 * Locks a file for this process by its inode, so that other names of it (a hard link, a bind mount) are locked too. The lock is a
 * Linux abstract socket, which is not on any disk and ends with the process. On other platforms, and for processes in another
 * network namespace, only `lockPath` protects the file.
 *
 * @returns a function that releases the lock.
 * @throws {PathInUse}
 */
export function lockInode(path: string, { dev, ino }: { dev: bigint; ino: bigint }): Promise<() => Promise<void>> {
  const nothing = () => Promise.resolve();
  if (process.platform !== 'linux') return Promise.resolve(nothing);
  return new Promise((resolved, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.unref();
    // This listener stays for the socket's lifetime: any local user can connect, and a failed accept is an error as well.
    server.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') resolved(nothing);
      else reject(inUse(path, error));
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
 * Locks a file for this process under all of its names. A file that does not exist yet can only have symbolic links as other names;
 * its inode is locked the next time.
 *
 * @returns a function that releases the lock.
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

const MAX_LINKS = 40;

/** Resolves symbolic links. The file need not exist yet, but its folder must. */
export async function withoutLinks(path: string): Promise<string> {
  let at = path;
  for (let links = 0; links < MAX_LINKS; links++) {
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

/** Whether any process holds the lock, this one included. Takes no lock and creates no file. */
export async function isLocked(path: string): Promise<boolean> {
  const connection = await withoutLinks(path)
    .then((file) => openLockFile(file, sqlite3.OPEN_READONLY))
    .catch(() => null);
  if (!connection) return false; // There is no lock file.
  try {
    await execute(connection, 'PRAGMA busy_timeout = 0; SELECT COUNT(*) FROM sqlite_schema');
    return false;
  } catch (error) {
    return codeOf(error) === 'SQLITE_BUSY';
  } finally {
    await close(connection);
  }
}

function openLockFile(path: string, mode: number): Promise<sqlite3.Database> {
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

function close(connection: sqlite3.Database): Promise<void> {
  return new Promise((resolve) => {
    connection.close(() => {
      resolve();
    });
  });
}

const codeOf = (error: unknown) => (error as { code?: string }).code;

const inUse = (path: string, cause: unknown) =>
  new PathInUse(`${path} is in use by another llmp process. Stop that process, or use another path`, { cause });
