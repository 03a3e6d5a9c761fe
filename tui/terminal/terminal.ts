import { type Capabilities, capabilitiesOf } from './capabilities.js';
import { clipboardSequence, intoTmuxBuffer } from './clipboard.js';
import { Frames } from './frame.js';
import type { Size, TerminalIo } from '../../console/terminal-io.js';
import { type Input, KeyDecoder } from './keys.js';
import { TerminalSession } from './session.js';
import { Output } from './output.js';

/** A terminal in full screen: input, size and output. No other code accesses the terminal. */
export interface Terminal {
  readonly size: Size;
  readonly capabilities: Capabilities;
  /**
   * Shows the lines that `produce` returns within 1/30 s, or as soon as the terminal has read earlier output. Only the newest frame is
   * produced. An error in `produce` ends the session like any other crash.
   */
  show(produce: () => readonly string[]): void;
  /** Listens for input: keys, pastes, and the mouse if it was asked for. ^C and ^Z are keys like any other. @returns a function that removes the listener. */
  onInput(hear: (input: Input) => void): () => void;
  onResize(hear: (size: Size) => void): () => void;
  /** Repaints the whole screen, over any other output. */
  repaint(): void;
  /** Suspends to the shell. Resumes by itself when the shell continues the process. */
  suspend(): void;
  /** Hands the terminal to `work`, and takes it over again afterwards. */
  lend<T>(work: () => Promise<T>): Promise<T>;
  /** Copies `text`. @returns null if it is too long. */
  copy(text: string): Promise<CopiedTo | null>;
  /** Hands the terminal back, and stops input and output. */
  close(exitCode?: number): void;
  /** The exit code, once the terminal is handed back: from `close`, a signal (128 + its number), or a crash (70). */
  readonly ended: Promise<number>;
}

/** `tmux`: its paste buffer has the text. `terminal`: it was sent to the clipboard of the terminal, which does not confirm it. */
export type CopiedTo = 'tmux' | 'terminal';

export interface TerminalOptions {
  /** Removes secrets and control characters from the report of a crash. */
  mask: (text: string) => string;
  /** Whether to hear the mouse. The terminal does not select text by itself then. */
  hasMouse?: boolean;
}

// Size of a terminal that does not report one.
const COLUMNS = 80;
const ROWS = 24;

/** Takes over the terminal. Nothing is shown before the first `show`. */
export function openTerminal(io: TerminalIo, { mask, hasMouse = false }: TerminalOptions): Terminal {
  const capabilities = capabilitiesOf(io);
  const size = () => ({ columns: io.stdout.columns || COLUMNS, rows: io.stdout.rows || ROWS });
  const output = new Output(io);
  const frames = new Frames({ output, clock: io.clock, size, isUtf8: capabilities.isUtf8 });
  const inputs = new Set<(input: Input) => void>();
  const sizes = new Set<(size: Size) => void>();
  const keys = new KeyDecoder(io.clock, (input) => {
    // Reports that an earlier program has left on are not meant for this one.
    if (input.kind === 'mouse' && !hasMouse) return;
    for (const hear of inputs) hear(input);
  });
  const life = new TerminalSession({
    io,
    output,
    hasMouse,
    mask,
    onEntered() {
      frames.resume();
    },
    onLeft() {
      frames.pause();
      keys.reset();
    },
  });
  const read = (bytes: Uint8Array | string) => {
    // A string, if code that had the terminal on loan has set an encoding.
    if (!life.isLent) keys.push(Buffer.from(bytes as string));
  };
  const resized = () => {
    frames.redraw();
    for (const hear of sizes) hear(size());
  };
  io.stdin.on('data', read);
  io.stdout.on('resize', resized);
  life.begin();
  void life.ended.then(() => {
    io.stdin.off('data', read);
    io.stdout.off('resize', resized);
  });

  return {
    get size() {
      return size();
    },
    capabilities,
    show(produce) {
      frames.show(() => {
        try {
          return produce();
        } catch (error) {
          life.crash(error);
          return [];
        }
      });
    },
    onInput: (hear) => listen(inputs, hear),
    onResize: (hear) => listen(sizes, hear),
    repaint() {
      frames.redraw();
    },
    suspend() {
      life.suspend();
    },
    lend: (work) => life.lend(work),
    async copy(text) {
      if (life.isInside && (await intoTmuxBuffer(text, io.env))) return 'tmux';
      const sequence = clipboardSequence(text, io.env);
      if (sequence === undefined || !life.isInside) return null;
      output.write(sequence);
      return 'terminal';
    },
    close(exitCode = 0) {
      life.end(exitCode);
    },
    ended: life.ended,
  };
}

function listen<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
