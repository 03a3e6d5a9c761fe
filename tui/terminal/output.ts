import type { TerminalIo } from '../../console/terminal-io.js';

const RETRY_EVERY_MS = 10;
// With the pause between them half a second: whoever ends a program waits no longer for a terminal that does not read.
const MOST_TRIES = 100;
const PAUSE_MS = 5;
// Ends whatever sequence was cut off; by itself it shows nothing.
const CANCEL = '\x18';

const NOTHING = new Uint8Array();
const isFull = (error: unknown) => (error as NodeJS.ErrnoException).code === 'EAGAIN';

/**
 * Bytes on their way to the terminal, without ever waiting for it.
 *
 * What does not fit is kept and tried again, so that a terminal that reads slowly, or not at all, neither stops the
 * program nor its signals. Whoever writes frames looks at `isClogged` first and skips those in between.
 */
export class Output {
  readonly #io: Pick<TerminalIo, 'write' | 'clock'>;
  #rest: Uint8Array = NOTHING;
  #isGone = false;
  /** Called when all that was kept is written. */
  onDrain: () => void = () => undefined;
  /** Called once, when there is no terminal any more. From then on nothing is written, and nothing fails. */
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

  /** Writes before it returns, in place of what was kept. Gives up on a terminal that does not read. */
  writeNow(text: string): void {
    if (this.#isGone) return;
    this.#rest = Buffer.from(this.isClogged ? CANCEL + text : text);
    for (let tries = 0; !this.#wroteAll() && tries < MOST_TRIES; tries++) {
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
