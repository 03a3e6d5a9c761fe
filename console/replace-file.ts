/** Replaces a file atomically. */
import {
  chmodSync,
  chownSync,
  closeSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
  writeSync,
} from 'node:fs';
import { randomBytes } from 'node:crypto';
import { basename, dirname, join } from 'node:path';

/**
 * Writes a temporary file with mode 0600 and renames it. A replaced file keeps its owner.
 *
 * @param before the existing file, if any.
 * @throws the error of the file system; the temporary file is removed then.
 */
export function replaceFile(path: string, text: string, mode: number, before: Stats | null): void {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`);
  const file = openSync(temporary, 'wx', 0o600);
  try {
    writeSync(file, text);
    fsyncSync(file);
    closeSync(file);
    if (before) chownSync(temporary, before.uid, before.gid);
    chmodSync(temporary, mode);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}
