import { EventEmitter } from 'node:events';
import { fitLine } from './fit.js';
import type { Clock, Size } from '../../console/terminal-io.js';
import type { Output } from './output.js';

const FRAME_MS = 1000 / 30;
// Synchronized output: terminals that support it show the changes at once; others ignore it.
const BEGIN = '\x1b[?2026h';
const END = '\x1b[?2026l';
const CLEAR = '\x1b[0m\x1b[2J';
// Ink writes modes to show and hide the cursor, which this class controls.
const ONLY_MODES = /^(?:\x1b\[\?\d+[hl])+$/; // eslint-disable-line no-control-regex

export interface FrameOptions {
  output: Output;
  clock: Clock;
  size: () => Size;
  /** Whether the terminal reads UTF-8. */
  isUtf8: boolean;
}

/**
 * Output stream for Ink in place of stdout. With `debug: true` Ink writes whole frames; of each frame only the changed lines are
 * written, in place, so that nothing scrolls and an unchanged frame writes no bytes.
 *
 * Writes up to 30 frames a second, the first one immediately, and none until the terminal has read the previous one. Frames
 * replaced by a newer one in the meantime are skipped.
 */
export class FrameStdout extends EventEmitter {
  readonly #options: FrameOptions;
  readonly isTTY = true;
  #next: string | undefined;
  #last: string | undefined;
  /** The lines on the screen; undefined if they are not known. */
  #shown: string[] | undefined;
  #produce: (() => void) | undefined;
  #paintedAtMs = -Infinity;
  #cancel: (() => void) | undefined;
  #isPainting = false;
  #isPaused = true;

  constructor(options: FrameOptions) {
    super();
    this.#options = options;
    options.output.onDrain = () => {
      this.#schedule();
    };
  }

  get columns(): number {
    return this.#options.size().columns;
  }

  get rows(): number {
    return this.#options.size().rows;
  }

  /** The last frame as received, with colours. */
  get last(): string {
    return this.#next ?? this.#last ?? '';
  }

  /** Takes a whole frame, with lines separated by `\n`. */
  write(frame: string): boolean {
    if (!ONLY_MODES.test(frame)) {
      this.#next = frame;
      this.#schedule();
    }
    return true;
  }

  /** Calls `produce` when its frame can be shown. Only the newest `produce` is called, so skipped frames are not laid out. */
  ask(produce: () => void): void {
    this.#produce = produce;
    this.#schedule();
  }

  /** Repaints the whole screen: on ^L, after a resize, or after other output. */
  redraw(): void {
    this.#shown = undefined;
    this.#next ??= this.#last;
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
    if (!this.#produce && this.#next === undefined) return;
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
      produce?.();
    } finally {
      this.#isPainting = false;
    }
    if (this.#next !== undefined && !this.#isPaused) {
      this.#last = this.#next;
      this.#next = undefined;
      const changes = this.#changes(this.#last.split('\n'));
      if (changes !== '') this.#options.output.write(`${BEGIN}${changes}${END}`);
    }
    this.#schedule(); // Layout may have requested another frame.
  }

  #changes(frame: string[]): string {
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
