import type { ReactNode } from 'react';
import { type Capabilities, capabilitiesOf, prepareLibraries } from './capabilities.js';
import { clipboardSequence } from './clipboard.js';
import { FrameStdout } from './frame.js';
import type { Size, TerminalIo } from '../../console/terminal-io.js';
import { type Input, KeyDecoder } from './keys.js';
import { Life } from './life.js';
import type { Mounted } from './mount.js';
import { Output } from './output.js';

/** A terminal in full screen. Inputs, sizes and elements go through here, and nothing else touches it. */
export interface Terminal {
  readonly size: Size;
  readonly capabilities: Capabilities;
  /** Shows lines as they are, for as long as Ink, which takes longer to load than all else, shows nothing yet. */
  paint(lines: readonly string[]): void;
  /** Shows the element, within 1/30 s or as soon as the terminal has read what came before. The newest one counts. */
  render(element: ReactNode): void;
  /** ^C and ^Z are keys here; the program says what they do. @returns takes the listener away. */
  onInput(hear: (input: Input) => void): () => void;
  onResize(hear: (size: Size) => void): () => void;
  /** Writes the whole screen anew, over whatever others wrote there. */
  repaint(): void;
  /** To the shell; comes back by itself when the shell continues us. */
  suspend(): void;
  /** Hands the terminal to `work`, and takes it back when that is over. */
  lend<T>(work: () => Promise<T>): Promise<T>;
  /** Sends `text` for the clipboard. @returns false where it is too long. Nobody knows whether it arrived. */
  copy(text: string): boolean;
  /** Hands the terminal back. Nothing is shown or heard from then on. */
  close(exitCode?: number): void;
  /** The code to exit with, once the terminal is handed back: by `close`, a signal (128 + its number), a crash (70). */
  readonly ended: Promise<number>;
}

export interface TerminalOptions {
  /** Takes secrets and control characters out of what is told of a crash. */
  mask: (text: string) => string;
}

// What a terminal has that does not know.
const COLUMNS = 80;
const ROWS = 24;

/**
 * Takes the terminal over; nothing is shown before the first `paint` or `render`.
 *
 * Whatever imports React or Ink must be imported after this, or after `prepareLibraries`; so does every `.tsx`, by itself.
 */
export function openTerminal(io: TerminalIo, { mask }: TerminalOptions): Terminal {
  const capabilities = capabilitiesOf(io);
  prepareLibraries(io.env, capabilities);

  const size = () => ({ columns: io.stdout.columns || COLUMNS, rows: io.stdout.rows || ROWS });
  const output = new Output(io);
  const frames = new FrameStdout({ output, clock: io.clock, size, isUtf8: capabilities.isUtf8 });
  const inputs = new Set<(input: Input) => void>();
  const sizes = new Set<(size: Size) => void>();
  const keys = new KeyDecoder(io.clock, (input) => {
    for (const hear of inputs) hear(input);
  });
  const life = new Life({
    io,
    output,
    mask,
    onEntered() {
      frames.resume();
    },
    onLeft() {
      frames.pause();
      keys.reset();
    },
  });
  const crash = (error: unknown) => {
    life.crash(error);
  };

  let mounted: Mounted | undefined;
  let shown: ReactNode;
  const show = (element: ReactNode) => {
    shown = element;
    if (!mounted) return;
    frames.ask(() => {
      mounted?.show(shown, size());
    });
  };
  import('./mount.js').then(({ mount }) => {
    mounted = mount(frames, crash);
    if (shown !== undefined) show(shown);
  }, crash);
  const read = (bytes: Uint8Array | string) => {
    // Text, once somebody whom it was lent to wanted it that way.
    if (!life.isLent) keys.push(Buffer.from(bytes as string));
  };
  const resized = () => {
    frames.redraw();
    for (const hear of sizes) hear(size());
    if (shown !== undefined) show(shown);
  };
  io.stdin.on('data', read);
  io.stdout.on('resize', resized);
  life.begin();
  void life.ended.then(() => {
    io.stdin.off('data', read);
    io.stdout.off('resize', resized);
    mounted?.unmount();
  });

  return {
    get size() {
      return size();
    },
    capabilities,
    paint(lines) {
      if (shown === undefined) frames.write(lines.join('\n'));
    },
    render: show,
    onInput: (hear) => listen(inputs, hear),
    onResize: (hear) => listen(sizes, hear),
    repaint() {
      frames.redraw();
    },
    suspend() {
      life.suspend();
    },
    lend: (work) => life.lend(work),
    copy(text) {
      const sequence = clipboardSequence(text, io.env);
      if (sequence === undefined || !life.isInside) return false;
      output.write(sequence);
      return true;
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
