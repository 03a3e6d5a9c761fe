/** A file of the operator's own, put in place whole or not at all. */
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
 * Whoever is to be able to read it before is its owner and, where it is replaced, its owner before.
 *
 * @param before what is there now.
 * @throws what the file system says; nothing of it is left then.
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
