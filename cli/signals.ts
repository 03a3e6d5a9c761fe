/** Forwards signals to a child process. */
import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import type { EndingSignal, Shell } from './shell.js';

/** Receives the signals that would end this process, from its construction on, and forwards them to a child process, if there is one. */
export class SignalRelay {
  readonly #shell: Shell;
  readonly #deadline = new AbortController();
  #deadlineMs = 0;
  #child: ChildProcess | undefined;
  /** The first signal received. */
  first: EndingSignal | undefined;

  constructor(shell: Shell) {
    this.#shell = shell;
    shell.onSignal((signal) => {
      this.#receive(signal);
    });
  }

  /** 128 plus the number of the first signal, as shells report it. */
  get exitCode(): number {
    return this.first === undefined ? 0 : 128 + constants.signals[this.first];
  }

  /** @returns a signal that is aborted `ms` milliseconds after the first signal. */
  abortedAfter(ms: number): AbortSignal {
    this.#deadlineMs = ms;
    return this.#deadline.signal;
  }

  /** Forwards all further signals to this child. */
  forwardTo(child: ChildProcess): ChildProcess {
    this.#child = child;
    return child;
  }

  #receive(signal: EndingSignal): void {
    if (this.first === undefined) {
      this.first = signal;
      setTimeout(() => {
        this.#deadline.abort();
      }, this.#deadlineMs).unref();
    }
    // The terminal sends ^C and ^\ to the child as well. If it received them twice, it might skip its cleanup.
    const isTyped = signal === 'SIGINT' || signal === 'SIGQUIT';
    if (!(isTyped && this.#shell.stdin.isTTY)) this.#child?.kill(signal);
  }
}
