/** Calls to a disk that may hang. */
import { fdatasyncSync, fstatSync, writeSync } from 'node:fs';
import type { Clock } from '../../core/ports.js';
import { isDoneWithin } from '../../core/timing.js';

export const HUNG_MS = 5_000;

/** Waits for a file system call, possibly with a timeout. */
export type Timed = <T>(call: Promise<T>) => Promise<T>;

/** Notices calls that do not return. */
export class HangWatch {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #onHung: () => void;
  /** Whether a call is pending that may never return. */
  isHung = false;

  /** @param onHung called when a call has not returned for `HUNG_MS`. It remains pending. */
  constructor(clock: Pick<Clock, 'after'>, onHung: () => void) {
    this.#clock = clock;
    this.#onHung = onHung;
  }

  readonly timed: Timed = async (call) => {
    const returned = call.then(
      () => undefined,
      () => undefined,
    );
    // Not while this process itself is stalled.
    void isDoneWithin(this.#clock, HUNG_MS, returned).then((isDone) => {
      if (isDone) return;
      this.isHung = true;
      this.#onHung();
    });
    try {
      return await call;
    } finally {
      this.isHung = false;
    }
  };
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
