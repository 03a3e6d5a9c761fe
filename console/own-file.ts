/**
 * The user's files, such as the contexts file. Those that decide what llmp does are read only if nobody else can have written them, and
 * files are replaced as a whole.
 */
import { type FileHandle, open, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
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
import { usage } from './failure.js';

/** Far more than anyone writes by hand. A larger file is not read. */
const MAX_BYTES = 256 * 1024;

interface Trust {
  /** What the owner of a foreign file could do. */
  risk: string;
  /** What to do about a foreign file. */
  advice: string;
}

/** @returns undefined if there is no such file. @throws {Failure} if it cannot be read, is too large, or can be written by others. */
export async function readOwnFile(path: string, trust: Trust): Promise<string | undefined> {
  let file: FileHandle;
  try {
    file = await open(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw unreadable(path, error);
  }
  try {
    refuseForeign(path, await file.stat(), trust);
    refuseForeign(dirname(path), await stat(dirname(path)), trust);
    // Not by its size, which is 0 for a pipe such as <(command).
    const buffer = Buffer.alloc(MAX_BYTES + 1);
    const length = await readInto(file, buffer).catch((error: unknown) => Promise.reject(unreadable(path, error)));
    if (length > MAX_BYTES) throw usage(`${path} is larger than ${MAX_BYTES / 1024} KiB`);
    return buffer.toString('utf8', 0, length);
  } finally {
    await file.close();
  }
}

async function readInto(file: FileHandle, buffer: Buffer): Promise<number> {
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return length;
}

/** @throws {Failure} if the file or folder belongs to a user other than this one and root, or is writable by others. */
function refuseForeign(path: string, { mode, uid }: { mode: number; uid: number }, { risk, advice }: Trust): void {
  if (uid !== 0 && uid !== process.getuid?.()) {
    throw usage(`${path} belongs to another user (uid ${uid})`, { why: risk, advice });
  }
  // In a folder with the sticky bit, such as /tmp, users cannot replace files of other users.
  if (mode & 0o022 && !(mode & 0o1000)) {
    throw usage(`${path} is writable by other users`, { advice: `Run: chmod go-w ${path}` });
  }
}

const unreadable = (path: string, cause: unknown) =>
  usage(`cannot read ${path}`, { why: (cause as NodeJS.ErrnoException).code ?? 'failed', cause });

/**
 * Replaces a file atomically: writes a temporary file with mode 0600 and renames it. A replaced file keeps its owner.
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
