import type { Clock } from '../../core/ports.js';

/**
 * Says the same thing once in a while only, and then how often it has happened since. For what a stranger can bring about as often as they
 * like.
 */
export class Seldom<Fields extends unknown[] = []> {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #say: (count: number, ...last: Fields) => void;
  #count = 0;
  #nextAtMs = -Infinity;

  constructor(clock: Clock, everyMs: number, say: (count: number, ...last: Fields) => void) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#say = say;
  }

  happened(...fields: Fields): void {
    this.#count += 1;
    const now = this.#clock.monotonic();
    if (now < this.#nextAtMs) return;
    this.#nextAtMs = now + this.#everyMs;
    this.#say(this.#count, ...fields);
    this.#count = 0;
  }
}
