/** Reads and writes the files of `llmp init`. */
import { chmodSync, lstatSync, mkdirSync, type Stats } from 'node:fs';
import { readTextFile, whyUnreadable } from '../../config/text-file.js';
import { EXIT, Failure } from '../../console/failure.js';
import { replaceFile } from '../../console/own-file.js';

export interface Existing {
  text: string;
  mode: number;
}

/** The failure for an existing file or folder that llmp did not create, or cannot use, and therefore does not replace. */
export const foreign = (path: string, why: string): Failure =>
  new Failure(EXIT.conflict, `cannot use ${path}: ${why}`, {
    code: 'foreign_file',
    advice: 'Move it, or choose another folder with --dir',
  });

/** @returns null if it does not exist. @throws {Failure} if it is not a regular file, or cannot be read. */
export function existingAt(path: string): Existing | null {
  const found = statOf(path);
  if (!found) return null;
  if (!found.isFile()) throw foreign(path, 'it is not a regular file');
  try {
    return { text: readTextFile(path), mode: found.mode & 0o777 };
  } catch (error) {
    throw foreign(path, `it cannot be read (${whyUnreadable(error)})`);
  }
}

function statOf(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw foreign(path, codeOf(error));
  }
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? 'failed';

/** @throws {Failure} if other users can write to the folder: they could replace files in it. */
export function refuseSharedFolder(dir: string): void {
  const found = statOf(dir);
  if (!found) return;
  if (!found.isDirectory()) throw foreign(dir, 'it is not a folder');
  if (found.mode & 0o022) throw foreign(dir, `other users can write to it (chmod 700 ${dir} if it is yours)`);
}

/** A line of the plan that is shown to the user, with secrets masked. */
export interface PlannedChange {
  action: 'create' | 'change' | 'keep' | 'restrict';
  path: string;
  what: string;
}

/** A file to write. If `text` is null, only its mode is changed. */
export interface FileWrite {
  path: string;
  text: string | null;
  mode: number;
}

/**
 * Writes the files in this order, each one atomically and without yielding to other code. A replaced file keeps its owner; no other
 * user can read a file while it is written.
 */
export function writeAll(dir: string, writes: readonly FileWrite[]): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    for (const { path, text, mode } of writes) {
      if (text === null) chmodSync(path, mode);
      else replaceFile(path, text, mode, statOf(path));
    }
  } catch (error) {
    throw new Failure(EXIT.refused, `cannot write in ${dir}`, {
      code: 'cannot_write',
      why: error instanceof Error ? error.message : '',
      advice: 'All files written so far are complete. Fix the cause and run the same command again',
      cause: error,
    });
  }
}
