/** Who holds the write lock of a SQLite database, as Linux reports it. */
import { readFileSync, statSync } from 'node:fs';
import { freezeProcess } from './freeze-process.js';

/** The byte of `PATH-shm` that the writer locks (WAL_WRITE_LOCK of SQLite's wal.c). */
const WRITE_LOCK_BYTE = '120';

/** Whether this system reports locks. */
export const reportsLocks = process.platform === 'linux';

/** The process that is writing to the database now. */
export function writerOf(database: string): number | null {
  const inode = String(statSync(`${database}-shm`).ino);
  for (const line of readFileSync('/proc/locks', 'utf8').split('\n')) {
    // For example `5: POSIX  ADVISORY  WRITE 4711 fe:00:9977925 120 120`. A line with `->` is a process that waits.
    const [, kind, , mode, pid, file = '', first] = line.split(/\s+/);
    if (kind !== 'POSIX' || mode !== 'WRITE' || first !== WRITE_LOCK_BYTE || !file.endsWith(`:${inode}`)) continue;
    return Number(pid);
  }
  return null;
}

/**
 * Freezes one of the processes in the middle of a transaction. They must be writing all the time.
 *
 * @returns its process ID; null if none was caught in time.
 */
export async function freezeWriter(
  database: string,
  pids: readonly number[],
  withinMs: number,
): Promise<number | null> {
  for (const giveUpMs = performance.now() + withinMs; performance.now() < giveUpMs;) {
    const pid = writerOf(database);
    if (pid !== null && pids.includes(pid) && freezeProcess(pid)) {
      if (writerOf(database) === pid) return pid;
      process.kill(pid, 'SIGCONT');
    }
    await new Promise(setImmediate);
  }
  return null;
}
