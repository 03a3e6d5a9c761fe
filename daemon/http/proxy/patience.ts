import type { Clock } from '../../core/ports.js';

// A client that sends less in all its time is silent: a trickle would hold a connection to the upstream for ever.
const ENOUGH_BYTES = 1024;

/** How long a client may take for its body: so long for each KiB. The time in which it is not waited for does not count. */
export class Patience {
  readonly #limitMs: number;
  readonly #clock: Clock;
  #leftMs: number;
  #bytes = 0;
  #sinceMs = 0;

  constructor(limitMs: number, clock: Clock) {
    this.#limitMs = limitMs;
    this.#clock = clock;
    this.#leftMs = limitMs;
  }

  /** Waits for the client from now on. @returns how long. */
  begin(): number {
    this.#sinceMs = this.#clock.monotonic();
    return this.#leftMs;
  }

  received(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes < ENOUGH_BYTES) {
      this.#leftMs -= this.#clock.monotonic() - this.#sinceMs;
    } else {
      this.#bytes = 0;
      this.#leftMs = this.#limitMs;
    }
  }
}
