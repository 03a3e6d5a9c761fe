import { fitLine } from './fit.js';
import type { Clock, Size } from '../../console/terminal-io.js';
import type { Output } from './output.js';

const FRAME_MS = 1000 / 30;
// Synchronized output: terminals that support it show the changes at once; others ignore it.
const BEGIN = '\x1b[?2026h';
const END = '\x1b[?2026l';
const CLEAR = '\x1b[0m\x1b[2J';

export interface FrameOptions {
  output: Output;
  clock: Clock;
  size: () => Size;
  /** Whether the terminal reads UTF-8. */
  isUtf8: boolean;
}

/**
 * Writes frames to the terminal. Of each frame only the changed lines are written, in place, so that nothing scrolls and an unchanged
 * frame writes no bytes.
 *
 * Writes up to 30 frames a second, the first one immediately, and none until the terminal has read the previous one. Frames
 * replaced by a newer one in the meantime are skipped.
 */
export class Frames {
  readonly #options: FrameOptions;
  #produce: (() => readonly string[]) | undefined;
  /** The newest frame. */
  #last: readonly string[] | undefined;
  /** The lines on the screen; undefined if they are not known. */
  #shown: readonly string[] | undefined;
  #paintedAtMs = -Infinity;
  #cancel: (() => void) | undefined;
  #isPainting = false;
  #isPaused = true;

  constructor(options: FrameOptions) {
    this.#options = options;
    options.output.onDrain = () => {
      this.#schedule();
    };
  }

  /** Calls `produce` for the lines of a frame when it can be shown. Only the newest `produce` is called, so skipped frames are not laid out. */
  show(produce: () => readonly string[]): void {
    this.#produce = produce;
    this.#schedule();
  }

  /** Repaints the whole screen: on ^L, after a resize, or after other output. */
  redraw(): void {
    this.#shown = undefined;
    this.#schedule();
  }

  pause(): void {
    this.#isPaused = true;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  /** Resumes with a full repaint, because the contents of the screen are not known. */
  resume(): void {
    this.#isPaused = false;
    this.redraw();
  }

  #schedule(): void {
    if (this.#isPaused || this.#isPainting || this.#cancel || this.#options.output.isClogged) return;
    if (!this.#produce && (this.#shown || !this.#last)) return;
    const waitMs = this.#paintedAtMs + FRAME_MS - this.#options.clock.monotonic();
    let isCancelled = false;
    const due = () => {
      if (isCancelled) return;
      this.#cancel = undefined;
      this.#paint();
    };
    const cancelTimer = waitMs > 0 ? this.#options.clock.after(waitMs, due) : undefined;
    this.#cancel = () => {
      isCancelled = true;
      cancelTimer?.();
    };
    // Deferred, so that all input of one read results in one frame.
    if (!cancelTimer) queueMicrotask(due);
  }

  #paint(): void {
    this.#paintedAtMs = this.#options.clock.monotonic();
    this.#isPainting = true;
    try {
      const produce = this.#produce;
      this.#produce = undefined;
      if (produce) this.#last = produce();
    } finally {
      this.#isPainting = false;
    }
    if (this.#last && !this.#isPaused) {
      const changes = this.#changes(this.#last);
      if (changes !== '') this.#options.output.write(`${BEGIN}${changes}${END}`);
    }
    this.#schedule(); // Layout may have requested another frame.
  }

  #changes(frame: readonly string[]): string {
    const { columns, rows } = this.#options.size();
    const lines = Array.from({ length: rows }, (_, row) => frame[row] ?? '');
    const shown = this.#shown;
    this.#shown = lines;
    const change = (line: string, row: number) => {
      if (line === (shown ? shown[row] : '')) return '';
      const fitted = fitLine(line, columns, this.#options.isUtf8);
      // Erase before writing: after a full line the cursor is still on the last character, which would be erased too.
      return `\x1b[${row + 1};1H\x1b[2K${fitted}`;
    };
    return (shown ? '' : CLEAR) + lines.map(change).join('');
  }
}
