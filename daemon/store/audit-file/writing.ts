import { fdatasyncSync, fstatSync, writeSync } from 'node:fs';

/** Some of what was to be written is there, and the rest may not be. */
export class NotWritten extends Error {
  /** Bytes that were taken. */
  readonly taken: number;
  override readonly cause: unknown;
  override name = 'NotWritten';
  constructor(taken: number, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause));
    this.taken = taken;
    this.cause = cause;
  }
}

/** Writes all of it, however little is taken at a time. @throws {NotWritten} */
export async function writeWhole(
  bytes: Buffer,
  write: (piece: Buffer) => Promise<{ bytesWritten: number }>,
): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    const { bytesWritten } = await write(bytes.subarray(at)).catch((error: unknown) => {
      throw new NotWritten(at, error);
    });
    if (bytesWritten === 0) throw new NotWritten(at, new Error('the file takes nothing'));
    at += bytesWritten;
  }
}

// Longer than a disk takes that works, shorter than anybody who ends a process waits.
const MOST_WAITED_MS = 500;
const STEP_MS = 5;

/**
 * Writes in the last moments of a process, when nothing that waits comes back any more.
 *
 * @param isWriting whether a thread may be writing: it ends by itself when the file has stopped growing.
 */
export function flushAtOnce(fd: number, bytes: Buffer, isWriting: boolean): void {
  try {
    if (isWriting) awaitQuiet(fd);
    for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
    fdatasyncSync(fd);
  } catch {
    // Nobody is left to be told.
  }
}

function awaitQuiet(fd: number): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  let [size, quiet] = [fstatSync(fd).size, 0];
  for (let waited = 0; waited < MOST_WAITED_MS && quiet < 4; waited += STEP_MS) {
    Atomics.wait(pause, 0, 0, STEP_MS);
    const now = fstatSync(fd).size;
    quiet = now === size ? quiet + 1 : 0;
    size = now;
  }
}
