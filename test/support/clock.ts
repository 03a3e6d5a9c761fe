import type { Clock } from '../../daemon/core/ports.js';

interface Timer {
  dueMs: number;
  action: () => void;
}

/**
 * A clock that a test moves. It runs along with real time (or stands still, for models). `advance` jumps ahead and fires the timers that
 * fall due on the way. Real time does not count during a jump: otherwise a timer that an action sets for the end of the jump would fall due
 * a little later, and would wait for that in real time.
 */
export class TestClock implements Clock {
  readonly #options: { standsStill: boolean; startMs?: number };
  #offsetMs = 0;
  #wallOffsetMs = 0;
  readonly #timers = new Set<Timer>();
  readonly #wallStartMs: number;
  readonly #realStartMs = performance.now();
  /** The real time at which the current jump began, if any. */
  #jumpsAtMs: number | null = null;

  constructor(options: { standsStill: boolean; startMs?: number } = { standsStill: false }) {
    this.#options = options;
    this.#wallStartMs = options.startMs ?? Date.now();
  }

  monotonic(): number {
    return (
      this.#offsetMs + (this.#options.standsStill ? 0 : (this.#jumpsAtMs ?? performance.now()) - this.#realStartMs)
    );
  }

  now(): number {
    return Math.floor(this.#wallStartMs + this.#wallOffsetMs + this.monotonic());
  }

  /** Changes the system time: the monotonic time does not move, and no timer fires. */
  setWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  /** The number of waiting timers. */
  get pending(): number {
    return this.#timers.size;
  }

  after(ms: number, action: () => void): () => void {
    const timer = { dueMs: this.monotonic() + ms, action };
    this.#timers.add(timer);
    const real = this.#options.standsStill
      ? undefined
      : setTimeout(() => {
          this.#fire(timer);
        }, ms).unref();
    return () => {
      clearTimeout(real);
      this.#timers.delete(timer);
    };
  }

  advance(ms: number): void {
    const before = this.#jumpsAtMs; // An action may jump as well.
    this.#jumpsAtMs ??= performance.now();
    try {
      this.#jump(ms);
    } finally {
      this.#jumpsAtMs = before;
    }
  }

  #jump(ms: number): void {
    const until = this.monotonic() + ms;
    for (;;) {
      const [next] = [...this.#timers].filter(({ dueMs }) => dueMs <= until).sort((a, b) => a.dueMs - b.dueMs);
      if (!next) break;
      this.#offsetMs += Math.max(0, next.dueMs - this.monotonic());
      this.#fire(next);
    }
    this.#offsetMs += Math.max(0, until - this.monotonic());
  }

  #fire(timer: Timer): void {
    if (this.#timers.delete(timer)) timer.action();
  }
}
