import type { TerminalIo } from '../../console/terminal-io.js';

const RETRY_EVERY_MS = 10;
// Half a second in total, with the pauses: the longest wait at exit for a terminal that does not read.
const MAX_TRIES = 100;
const PAUSE_MS = 5;
// Cancels an incomplete sequence; otherwise without effect.
const CANCEL = '\x18';

const NOTHING = new Uint8Array();
const isFull = (error: unknown) => (error as NodeJS.ErrnoException).code === 'EAGAIN';

/**
 * Non-blocking output to the terminal.
 *
 * Bytes that the terminal does not accept are buffered and retried, so that a slow or stopped terminal blocks neither the program nor
 * its signal handlers. `Frames` checks `isClogged` before each frame and skips frames in the meantime.
 */
export class Output {
  readonly #io: Pick<TerminalIo, 'write' | 'clock'>;
  #rest: Uint8Array = NOTHING;
  #isGone = false;
  /** Called when the buffer has been written. */
  onDrain: () => void = () => undefined;
  /** Called once, when the terminal is gone. Later writes are ignored. */
  onGone: () => void = () => undefined;

  constructor(io: Pick<TerminalIo, 'write' | 'clock'>) {
    this.#io = io;
  }

  get isClogged(): boolean {
    return this.#rest.length > 0;
  }

  write(text: string): void {
    if (this.#isGone) return;
    const wasClogged = this.isClogged;
    this.#rest = Buffer.concat([this.#rest, Buffer.from(text)]);
    if (!wasClogged && !this.#wroteAll()) this.#retryLater();
  }

  /** Writes synchronously, and discards the buffer. Gives up on a terminal that does not read. */
  writeNow(text: string): void {
    if (this.#isGone) return;
    this.#rest = Buffer.from(this.isClogged ? CANCEL + text : text);
    for (let tries = 0; !this.#wroteAll() && tries < MAX_TRIES; tries++) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
    }
    this.#rest = NOTHING;
  }

  #retryLater(): void {
    this.#io.clock.after(RETRY_EVERY_MS, () => {
      if (this.#wroteAll()) this.onDrain();
      else this.#retryLater();
    });
  }

  #wroteAll(): boolean {
    try {
      while (this.#rest.length > 0) {
        const written = this.#io.write(this.#rest);
        if (written === 0) return false;
        this.#rest = this.#rest.subarray(written);
      }
    } catch (error) {
      if (isFull(error)) return false;
      this.#rest = NOTHING;
      this.#isGone = true;
      this.onGone();
    }
    return true;
  }
}
