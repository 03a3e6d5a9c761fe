import type { Clock } from '../../../core/ports.js';

// A client that is slower than this counts as silent: otherwise a trickle of bytes could hold a connection to the upstream forever.
const UNIT_BYTES = 1024;

/** Minimum upload rate of a request body: `limitMs` for each KiB. Only time in which the proxy waits for the client counts. */
export class MinimumRate {
  readonly #limitMs: number;
  readonly #clock: Clock;
  #remainingMs: number;
  #bytes = 0;
  #sinceMs = 0;

  constructor(limitMs: number, clock: Clock) {
    this.#limitMs = limitMs;
    this.#clock = clock;
    this.#remainingMs = limitMs;
  }

  /** Starts waiting for the client. @returns the remaining time for the current KiB, in milliseconds. */
  startWaiting(): number {
    this.#sinceMs = this.#clock.monotonic();
    return this.#remainingMs;
  }

  /** @param wasAwaited whether the proxy was waiting for these bytes. */
  received(bytes: number, wasAwaited: boolean): void {
    this.#bytes += bytes;
    if (this.#bytes < UNIT_BYTES) {
      const nowMs = this.#clock.monotonic();
      if (wasAwaited) this.#remainingMs -= nowMs - this.#sinceMs;
      this.#sinceMs = nowMs;
    } else {
      this.#bytes = 0;
      this.#remainingMs = this.#limitMs;
    }
  }
}
