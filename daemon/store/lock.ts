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
 * @returns lets go.
 * @throws {PathInUse}
 */
export async function lockPath(path: string): Promise<() => Promise<void>> {
  const connection = await new Promise<sqlite3.Database>((resolve, reject) => {
    const opened = new sqlite3.Database(`${path}.lock`, (error) => {
      if (error) reject(error);
      else resolve(opened);
    });
  });
  const close = () =>
    new Promise<void>((resolve) => {
      connection.close(() => {
        resolve();
      });
    });
  try {
    await new Promise<void>((resolve, reject) => {
      connection.exec('BEGIN EXCLUSIVE', (error) => {
        if (error) reject(error);
        else resolve();
      });
    });
  } catch (error) {
    await close();
    if ((error as { code?: string }).code !== 'SQLITE_BUSY') throw error;
    throw new PathInUse(`${path} is in use by another llmp process`, { cause: error });
  }
  return close;
}
