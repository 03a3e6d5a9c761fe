import type { Clock } from '../core/ports.js';

/** Something to wait for that somebody else brings about. */
export class Wakeup {
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when somebody wakes, and after `mostMs` in any case. */
  wait(mostMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        cancel();
        this.#waiting.delete(done);
        resolve();
      };
      const cancel = this.#clock.after(Math.max(0, mostMs), done);
      this.#waiting.add(done);
    });
  }

  wake(): void {
    for (const done of [...this.#waiting]) done();
  }
}
