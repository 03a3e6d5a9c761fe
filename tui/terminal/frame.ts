import { EventEmitter } from 'node:events';
import { fitLine } from './fit.js';
import type { Clock, Size } from '../../console/terminal-io.js';
import type { Output } from './output.js';

const FRAME_MS = 1000 / 30;
// Terminals that know it show the changes at once; the others take no notice.
const BEGIN = '\x1b[?2026h';
const END = '\x1b[?2026l';
const CLEAR = '\x1b[0m\x1b[2J';
// Ink shows and hides the cursor, which is ours.
const ONLY_MODES = /^(?:\x1b\[\?\d+[hl])+$/; // eslint-disable-line no-control-regex

export interface FrameOptions {
  output: Output;
  clock: Clock;
  size: () => Size;
  /** Whether the terminal understands more than ASCII. */
  isUtf8: boolean;
}

/**
 * What Ink takes for the terminal. With `debug: true` it hands over whole frames; of each only the lines that changed
 * are written, at their place, so that nothing scrolls and an unchanged frame costs no byte.
 *
 * At most 30 frames a second, the first one at once; while the terminal has not read the one before, none. Frames
 * that are overtaken are never written.
 */
export class FrameStdout extends EventEmitter {
  readonly #options: FrameOptions;
  readonly isTTY = true;
  #next: string | undefined;
  #last: string | undefined;
  /** The lines on the screen; undefined while nobody knows. */
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

  /** The last frame as it came, colours and all. */
  get last(): string {
    return this.#next ?? this.#last ?? '';
  }

  /** Takes a whole frame, lines parted by `\n`. */
  write(frame: string): boolean {
    if (!ONLY_MODES.test(frame)) {
      this.#next = frame;
      this.#schedule();
    }
    return true;
  }

  /** Calls `produce` when its frame may be shown, which spares laying out the ones in between. The newest one counts. */
  ask(produce: () => void): void {
    this.#produce = produce;
    this.#schedule();
  }

  /** Paints the whole screen anew: at ^L, at another size, after somebody else wrote on it. */
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

  /** Goes on with a screen of which nothing is known. */
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
    // One turn later, what one read of the keyboard brings is one frame.
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
    this.#schedule(); // Laying out may have asked for more.
  }

  #changes(frame: string[]): string {
    const { columns, rows } = this.#options.size();
    const lines = Array.from({ length: rows }, (_, row) => frame[row] ?? '');
    const shown = this.#shown;
    this.#shown = lines;
    const change = (line: string, row: number) => {
      if (line === (shown ? shown[row] : '')) return '';
      const fitted = fitLine(line, columns, this.#options.isUtf8);
      // Erased before, not after: behind a full line the cursor stays on its last character, which would go too.
      return `\x1b[${row + 1};1H\x1b[2K${fitted}`;
    };
    return (shown ? '' : CLEAR) + lines.map(change).join('');
  }
}
