import { constants } from 'node:os';
import { inspect } from 'node:util';
import type { TerminalIo } from '../../console/terminal-io.js';
import { MOUSE_ON } from './mouse.js';
import type { Output } from './output.js';
import { StrayOutput } from './stray-output.js';

// Alternate screen, no cursor, no wrapping at the right edge, bracketed paste.
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h\x1b[0m\x1b[2J\x1b[H';
// Also turns off mouse and focus reports: its own, and those which an earlier program may have left on.
const LEAVE =
  '\x1b[?2026l\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?7h\x1b[0m\x1b[?25h\x1b[?1049l';

const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;
const codeOf = (signal: (typeof ENDING_SIGNALS)[number]) => 128 + constants.signals[signal];
const CRASHED = 70; // EX_SOFTWARE
// Without a shell that could continue the process, the system does not stop it, and does not report that.
const STOPPED_WITHIN_MS = 50;

export interface TerminalSessionOptions {
  io: TerminalIo;
  output: Output;
  /** Whether the terminal reports the mouse. It does not select text then. */
  hasMouse: boolean;
  /** Removes secrets and control characters from a text, for the terminal and for bug reports. */
  mask: (text: string) => string;
  /** Called when the screen was taken over and cleared. */
  onEntered: () => void;
  /** Called before the screen is handed back: nothing may be written afterwards. */
  onLeft: () => void;
}

/**
 * The terminal session: takes over the terminal, hands it back while the process is stopped, and restores it at every end that a
 * process can notice.
 */
export class TerminalSession {
  readonly #options: TerminalSessionOptions;
  readonly ended: Promise<number>;
  #state: 'outside' | 'inside' | 'stopped' | 'lent' | 'ended' = 'outside';
  #resolve: (code: number) => void = () => undefined;
  #detach: (() => void)[] = [];
  readonly #strays: StrayOutput;
  readonly #stopAlone = () => {
    this.#stop(this.#options.io.process.pid); // The sender decides which other processes to stop.
  };

  constructor(options: TerminalSessionOptions) {
    this.#options = options;
    const { io, output } = options;
    this.ended = new Promise((resolve) => (this.#resolve = resolve));
    void this.ended.then(() => {
      // Not earlier: if Ink had the last listener of a signal, it would let the signal end the process.
      for (const detach of this.#detach.splice(0)) detach();
    });
    this.#strays = new StrayOutput([io.stdout, io.stderr]);
    output.onGone = () => {
      this.end(codeOf('SIGHUP'));
    };
  }

  /** Whether the session has the screen now. */
  get isInside(): boolean {
    return this.#state === 'inside';
  }

  /** Takes over the terminal. */
  begin(): void {
    this.#listen();
    this.#enter();
  }

  /** Ends the session and hands the terminal back. The first exit code wins. */
  end(code: number): void {
    if (this.#state === 'ended') return;
    this.#leave();
    this.#state = 'ended';
    const strays = this.#strays.take();
    if (strays) this.#options.io.stderr.write(this.#options.mask(strays));
    this.#resolve(code);
  }

  /** Ends the session because of an unexpected error, and reports the error. */
  crash(error: unknown): void {
    this.end(CRASHED);
    const text = error instanceof Error ? (error.stack ?? error.message) : inspect(error);
    this.#options.io.stderr.write(`Internal error: ${this.#options.mask(text)}\n`);
  }

  /** Suspends to the shell, like ^Z in other programs; `fg` resumes. */
  suspend(): void {
    this.#stop(0); // Stops the whole job, as the terminal would, including npm or the other end of a pipe.
  }

  /** Hands the terminal back while `work` runs, such as a prompt, and takes it over again. */
  async lend<T>(work: () => Promise<T>): Promise<T> {
    if (this.#state !== 'inside') return work();
    this.#leave();
    this.#state = 'lent';
    try {
      return await work();
    } finally {
      // The session may have ended in the meantime.
      if (this.isLent) this.#enter();
    }
  }

  /** Whether input is for the code that has the terminal on loan. */
  get isLent(): boolean {
    return this.#state === 'lent';
  }

  #listen(): void {
    const { process, stdin, stdout } = this.#options.io;
    for (const signal of ENDING_SIGNALS) {
      this.#on(process, signal, () => {
        this.end(codeOf(signal));
      });
    }
    this.#on(process, 'SIGTSTP', this.#stopAlone);
    this.#on(process, 'SIGCONT', () => {
      this.#continued();
    });
    this.#on(process, 'exit', () => {
      this.end(0);
    });
    for (const gone of ['end', 'close', 'error']) {
      this.#on(stdin, gone, () => {
        this.end(codeOf('SIGHUP'));
      });
    }
    this.#on(stdout, 'error', () => {
      this.end(codeOf('SIGHUP'));
    });
    // These listeners stay, so that errors during the exit are also masked.
    for (const crash of ['uncaughtException', 'unhandledRejection']) {
      process.on(crash, (error: unknown) => {
        this.crash(error);
        this.#options.io.exit(CRASHED); // The state of the process is undefined.
      });
    }
  }

  #on(emitter: NodeJS.EventEmitter, event: string, listener: () => void): void {
    emitter.on(event, listener);
    this.#detach.push(() => emitter.off(event, listener));
  }

  #enter(): void {
    const { io, output, hasMouse, onEntered } = this.#options;
    // This comes first: in the background it stops the process again, before anything is written over the shell.
    // Off and on again, because the shell may have changed the mode without notice.
    io.stdin.setRawMode?.(false);
    io.stdin.setRawMode?.(true);
    if (this.#state === 'ended') return; // Setting the mode showed that the terminal is gone.
    io.stdin.resume();
    io.setBlocking(false);
    this.#strays.catch();
    this.#state = 'inside';
    output.write(hasMouse ? ENTER + MOUSE_ON : ENTER);
    onEntered();
  }

  #leave(): void {
    const { io, output, onLeft } = this.#options;
    if (this.#state !== 'inside') return;
    this.#state = 'outside';
    onLeft();
    output.writeNow(LEAVE);
    io.setBlocking(true);
    this.#strays.release();
    io.stdin.setRawMode?.(false);
    io.stdin.pause();
  }

  #stop(pid: number): void {
    const { process, clock } = this.#options.io;
    if (this.#state !== 'inside') return;
    this.#leave();
    this.#state = 'stopped';
    process.off('SIGTSTP', this.#stopAlone); // Without a listener the signal stops the process.
    process.kill(pid, 'SIGTSTP'); // The process stops here until it is continued.
    process.on('SIGTSTP', this.#stopAlone);
    // The second timer lets a pending SIGCONT be handled first.
    clock.after(STOPPED_WITHIN_MS, () => {
      clock.after(1, () => {
        if (this.#state === 'stopped') this.#enter();
      });
    });
  }

  /** Handles SIGCONT, also after a stop without notice (SIGSTOP), during which the shell used the terminal. */
  #continued(): void {
    if (this.#state === 'stopped' || this.#state === 'inside') this.#enter();
    // A process in the background is not notified of a resize. SIGWINCH makes Node read the size again.
    this.#options.io.process.kill(this.#options.io.process.pid, 'SIGWINCH');
  }
}
