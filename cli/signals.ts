/** What asks a process to end, on its way to the process that it started. */
import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import type { EndingSignal, Shell } from './shell.js';

/** Hears signals from its making on, so that they no longer end the process. */
export class Signals {
  readonly #shell: Shell;
  readonly #hurry = new AbortController();
  #hurryMs = 0;
  #child: ChildProcess | undefined;
  /** The first that came. */
  first: EndingSignal | undefined;

  constructor(shell: Shell) {
    this.#shell = shell;
    shell.onSignal((signal) => {
      this.#hear(signal);
    });
  }

  /** Of a process that the first signal ended, as shells have it. */
  get exitCode(): number {
    return this.first === undefined ? 0 : 128 + constants.signals[this.first];
  }

  /** Aborted so long after the first signal. */
  abortedAfter(ms: number): AbortSignal {
    this.#hurryMs = ms;
    return this.#hurry.signal;
  }

  /** From now on what is heard goes to this child. */
  passTo(child: ChildProcess): ChildProcess {
    this.#child = child;
    return child;
  }

  #hear(signal: EndingSignal): void {
    if (this.first === undefined) {
      this.first = signal;
      setTimeout(() => {
        this.#hurry.abort();
      }, this.#hurryMs).unref();
    }
    // A terminal sends what is typed there to the child as well, which would take the second one for impatience.
    const isTyped = signal === 'SIGINT' || signal === 'SIGQUIT';
    if (!(isTyped && this.#shell.stdin.isTTY)) this.#child?.kill(signal);
  }
}
