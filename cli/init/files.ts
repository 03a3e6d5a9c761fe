/** The files that `llmp init` finds and writes. */
import { chmodSync, lstatSync, mkdirSync, readFileSync, type Stats } from 'node:fs';
import { EXIT, Failure } from '../../console/failure.js';
import { replaceFile } from './replace-file.js';

export interface Existing {
  text: string;
  mode: number;
}

/** Refuses what is not plainly a file of ours to replace. */
export const foreign = (path: string, why: string): Failure =>
  new Failure(EXIT.conflict, `${path} is in the way: ${why}`, {
    code: 'foreign_file',
    advice: 'Move it away, or choose another folder with --dir',
  });

/** @returns null when there is none. @throws {Failure} for what is no file, or cannot be read. */
export function existingAt(path: string): Existing | null {
  const found = statOf(path);
  if (!found) return null;
  if (!found.isFile()) throw foreign(path, 'it is not a plain file');
  try {
    return { text: readFileSync(path, 'utf8'), mode: found.mode & 0o777 };
  } catch (error) {
    throw foreign(path, `it cannot be read (${codeOf(error)})`);
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

/** @throws {Failure} for a folder that somebody else could exchange files in. */
export function refuseSharedFolder(dir: string): void {
  const found = statOf(dir);
  if (!found) return;
  if (!found.isDirectory()) throw foreign(dir, 'it is no folder');
  if (found.mode & 0o022) throw foreign(dir, `others can write it (chmod 700 ${dir} if it is yours)`);
}

/** What becomes of a file, in words for the plan; secrets are masked. */
export interface Planned {
  action: 'create' | 'change' | 'keep' | 'restrict';
  path: string;
  what: string;
}

/** Null: the file stays, and its mode is set. */
export interface Write {
  path: string;
  text: string | null;
  mode: number;
}

/**
 * Writes each file whole or not at all, in this order, without a pause in between; whoever is to be able to read one of them before
 * is its owner and, where it is replaced, its owner before.
 */
export function writeAll(dir: string, writes: readonly Write[]): void {
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
      advice: 'What was written before is whole; once that is mended, the same command goes on',
      cause: error,
    });
  }
}
