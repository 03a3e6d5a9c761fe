/**
 * What is done for requests that are over: what they said is read, and all who keep a record are told.
 *
 * Of all that end in one turn of the event loop, together at its end. One by one, in between what others are in the middle of, each
 * would find its code and data gone from the processor's caches: that took a ninth of a request's time.
 *
 * What is read there are strangers' bytes, and many requests can end at once. So it is done for a few milliseconds at a time, and in
 * between the others have their turn.
 */
import type { Clock } from '../../core/ports.js';

// A fraction of what anybody would notice of a turn of the event loop.
const MOST_OF_A_TURN_MS = 5;

export interface Over {
  /** It neither waits nor throws. */
  tell(): void;
}

export class Afterwards {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #over: Over[] = [];
  /** The first that was not told yet. */
  #next = 0;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  add(request: Over): void {
    this.#over.push(request);
    if (this.#over.length - this.#next === 1) setImmediate(this.#slice);
  }

  /** All of it now, for whoever cannot wait. */
  settle(): void {
    this.#tell(Infinity);
  }

  readonly #slice = (): void => {
    this.#tell(this.#clock.monotonic() + MOST_OF_A_TURN_MS);
    if (this.#next < this.#over.length) setImmediate(this.#slice);
  };

  #tell(untilMs: number): void {
    do {
      const request = this.#over[this.#next];
      if (!request) break;
      this.#next += 1;
      request.tell();
    } while (this.#clock.monotonic() < untilMs);
    // Those that were told are let go, also while there are always more.
    if (2 * this.#next < this.#over.length) return;
    this.#over = this.#over.slice(this.#next);
    this.#next = 0;
  }
}
