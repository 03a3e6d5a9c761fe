import type { Clock } from '../../core/ports.js';

/**
 * Rate limit for a log message: logs at most once per interval, with the number of occurrences since the last time. For messages that any
 * client can trigger as often as it likes.
 */
export class LogThrottle<Fields extends unknown[] = []> {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #log: (count: number, ...last: Fields) => void;
  #count = 0;
  #nextAtMs = -Infinity;

  constructor(clock: Clock, intervalMs: number, log: (count: number, ...last: Fields) => void) {
    this.#clock = clock;
    this.#intervalMs = intervalMs;
    this.#log = log;
  }

  record(...fields: Fields): void {
    this.#count += 1;
    const now = this.#clock.monotonic();
    if (now < this.#nextAtMs) return;
    this.#nextAtMs = now + this.#intervalMs;
    this.#log(this.#count, ...fields);
    this.#count = 0;
  }
}
