import { constants } from 'node:os';
import { inspect } from 'node:util';
import type { TerminalIo } from '../../console/terminal-io.js';
import type { Output } from './output.js';
import { Strays } from './strays.js';

// Alternate screen, no cursor, no wrapping at the right edge, brackets around pastes.
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h\x1b[0m\x1b[2J\x1b[H';
// Reports of mouse and focus are switched off as well: whoever was here before may have left them on.
const LEAVE =
  '\x1b[?2026l\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?7h\x1b[0m\x1b[?25h\x1b[?1049l';

const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;
const codeOf = (signal: (typeof ENDING_SIGNALS)[number]) => 128 + constants.signals[signal];
const CRASHED = 70; // EX_SOFTWARE
// Where nobody could continue us, as under no shell, the system does not stop us either, and nobody says so.
const STOPPED_WITHIN_MS = 50;

export interface LifeOptions {
  io: TerminalIo;
  output: Output;
  /** Makes a text fit for a terminal and a bug report: no secret in it, no control characters. */
  mask: (text: string) => string;
  /** The screen is ours, and empty. */
  onEntered: () => void;
  /** It no longer is: not a byte more. */
  onLeft: () => void;
}

/**
 * The terminal while it is ours: taken over, handed back while we are stopped, and left as it was found at every end
 * that a process can notice.
 */
export class Life {
  readonly #options: LifeOptions;
  readonly ended: Promise<number>;
  #state: 'outside' | 'inside' | 'stopped' | 'lent' | 'ended' = 'outside';
  #resolve: (code: number) => void = () => undefined;
  #detach: (() => void)[] = [];
  readonly #strays: Strays;
  readonly #stopAlone = () => {
    this.#stop(this.#options.io.process.pid); // Whoever sent it knows whom else to send it to.
  };

  constructor(options: LifeOptions) {
    this.#options = options;
    const { io, output } = options;
    this.ended = new Promise((resolve) => (this.#resolve = resolve));
    void this.ended.then(() => {
      // Not before: Ink, if it found itself the last to hear a signal, would have the process die of it.
      for (const detach of this.#detach.splice(0)) detach();
    });
    this.#strays = new Strays([io.stdout, io.stderr]);
    output.onGone = () => {
      this.end(codeOf('SIGHUP'));
    };
  }

  /** Whether the screen is ours right now. */
  get isInside(): boolean {
    return this.#state === 'inside';
  }

  /** Takes the terminal over. */
  begin(): void {
    this.#listen();
    this.#enter();
  }

  /** Hands the terminal back for good. The first code counts. */
  end(code: number): void {
    if (this.#state === 'ended') return;
    this.#leave();
    this.#state = 'ended';
    const strays = this.#strays.take();
    if (strays) this.#options.io.stderr.write(this.#options.mask(strays));
    this.#resolve(code);
  }

  /** Ends by an error that nobody expected. */
  crash(error: unknown): void {
    this.end(CRASHED);
    const text = error instanceof Error ? (error.stack ?? error.message) : inspect(error);
    this.#options.io.stderr.write(`Internal error: ${this.#options.mask(text)}\n`);
  }

  /** What ^Z does elsewhere: to the shell, and with `fg` back again. */
  suspend(): void {
    this.#stop(0); // The whole job, as the terminal would: npm or a pipe's other end among it.
  }

  /** Hands the terminal back for as long as `work` takes, such as a question on it, and takes it over again. */
  async lend<T>(work: () => Promise<T>): Promise<T> {
    if (this.#state !== 'inside') return work();
    this.#leave();
    this.#state = 'lent';
    try {
      return await work();
    } finally {
      // It may have come to its end meanwhile.
      if (this.isLent) this.#enter();
    }
  }

  /** What is typed is for somebody else. */
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
    // These stay: what goes wrong while the program ends is told by the same rules.
    for (const crash of ['uncaughtException', 'unhandledRejection']) {
      process.on(crash, (error: unknown) => {
        this.crash(error);
        this.#options.io.exit(CRASHED); // Nobody knows what still holds.
      });
    }
  }

  #on(emitter: NodeJS.EventEmitter, event: string, listener: () => void): void {
    emitter.on(event, listener);
    this.#detach.push(() => emitter.off(event, listener));
  }

  #enter(): void {
    const { io, output, onEntered } = this.#options;
    // First of all: in the background this stops us once more, before anything is written over the shell.
    // Off and on, since the shell may have changed it without our knowing.
    io.stdin.setRawMode?.(false);
    io.stdin.setRawMode?.(true);
    if (this.#state === 'ended') return; // The terminal is gone, as it turned out.
    io.stdin.resume();
    io.setBlocking(false);
    this.#strays.catch();
    this.#state = 'inside';
    output.write(ENTER);
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
    process.off('SIGTSTP', this.#stopAlone); // With nobody listening it stops.
    process.kill(pid, 'SIGTSTP'); // Here we stand until somebody continues us.
    process.on('SIGTSTP', this.#stopAlone);
    // The second one lets the news that we were continued pass.
    clock.after(STOPPED_WITHIN_MS, () => {
      clock.after(1, () => {
        if (this.#state === 'stopped') this.#enter();
      });
    });
  }

  /** Also from a stop that came unannounced, after which the shell has been at the terminal. */
  #continued(): void {
    if (this.#state === 'stopped' || this.#state === 'inside') this.#enter();
    // Not in the foreground, nobody tells us that the terminal's size changed; Node looks when somebody does.
    this.#options.io.process.kill(this.#options.io.process.pid, 'SIGWINCH');
  }
}
