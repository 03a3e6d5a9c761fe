import { fdatasyncSync, fstatSync, writeSync } from 'node:fs';

/** A write failed; some of its bytes may be in the file. */
export class WriteFailed extends Error {
  /** Bytes written before the failure. */
  readonly bytesWritten: number;
  override readonly cause: unknown;
  override name = 'WriteFailed';
  constructor(taken: number, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause));
    this.bytesWritten = taken;
    this.cause = cause;
  }
}

/** Writes all bytes, however few each call writes. @throws {WriteFailed} */
export async function writeWhole(
  bytes: Buffer,
  write: (piece: Buffer) => Promise<{ bytesWritten: number }>,
): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    const { bytesWritten } = await write(bytes.subarray(at)).catch((error: unknown) => {
      throw new WriteFailed(at, error);
    });
    if (bytesWritten === 0) throw new WriteFailed(at, new Error('the file system accepts no bytes'));
    at += bytesWritten;
  }
}

// Longer than a working disk takes, and shorter than anyone who ends a process would wait.
const MAX_WAIT_MS = 500;
const STEP_MS = 5;

/**
 * Writes synchronously in the last moments of a process, when asynchronous calls no longer return.
 *
 * @param isWriting whether a thread may still be writing: its write is complete when the file stops growing.
 */
export function writeAllSync(fd: number, bytes: Buffer, isWriting: boolean): void {
  try {
    if (isWriting) awaitQuiet(fd);
    for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
    fdatasyncSync(fd);
  } catch {
    // The process is ending: there is nowhere to report an error.
  }
}

function awaitQuiet(fd: number): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  let [size, quiet] = [fstatSync(fd).size, 0];
  for (let waited = 0; waited < MAX_WAIT_MS && quiet < 4; waited += STEP_MS) {
    Atomics.wait(pause, 0, 0, STEP_MS);
    const now = fstatSync(fd).size;
    quiet = now === size ? quiet + 1 : 0;
    size = now;
  }
}
