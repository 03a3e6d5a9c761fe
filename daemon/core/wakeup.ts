import type { Clock } from './ports.js';

/** Signal that wakes all who wait for it. */
export class Wakeup {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #waiting = new Set<() => void>();

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock;
  }

  get isAwaited(): boolean {
    return this.#waiting.size > 0;
  }

  /** @param limit how long to wait at most, in ms, or a signal that ends it. @returns a promise that resolves at the next `wake()`, or then. */
  wait(limit: number | AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        end();
        this.#waiting.delete(done);
        resolve();
      };
      const end = typeof limit === 'number' ? this.#clock.after(Math.max(0, limit), done) : onAbort(limit, done);
      this.#waiting.add(done);
    });
  }

  wake(): void {
    for (const done of [...this.#waiting]) done();
  }
}

/** @returns a function that cancels it. */
function onAbort(signal: AbortSignal, action: () => void): () => void {
  if (signal.aborted) queueMicrotask(action);
  signal.addEventListener('abort', action);
  return () => {
    signal.removeEventListener('abort', action);
  };
}
