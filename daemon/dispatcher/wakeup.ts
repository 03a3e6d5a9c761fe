import type { Clock } from '../core/ports.js';

/** Signal that wakes all current waiters, each of which also has a timeout. */
export class Wakeup {
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves on the next `wake()`, and after `timeoutMs` at the latest. */
  wait(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        cancel();
        this.#waiting.delete(done);
        resolve();
      };
      const cancel = this.#clock.after(Math.max(0, timeoutMs), done);
      this.#waiting.add(done);
    });
  }

  wake(): void {
    for (const done of [...this.#waiting]) done();
  }
}
