import { InFlight, Member } from '../../core/in-flight.js';
import type { Clock } from '../../core/ports.js';
import { deadline } from './deadline.js';

// Where much is watched something falls due at every moment, and each look is at all of it.
const LOOK_AGAIN_AFTER_MS = 10;
// Node's timers are up to a millisecond early.
const EARLY_MS = 1;

/** All that is watched for silence. One timer does for all: setting one and clearing it would be a twentieth of a request's work. */
export class Watches {
  readonly clock: Clock;
  readonly #watched = new InFlight<Watch>();
  #looksAtMs = Infinity;
  #cancel: (() => void) | null = null;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  add(watch: Watch): void {
    this.#watched.add(watch);
  }

  delete(watch: Watch): void {
    this.#watched.delete(watch);
    if (this.#watched.size === 0) this.#rest();
  }

  /** Has a look at this time or before. */
  lookBy(atMs: number): void {
    if (atMs >= this.#looksAtMs) return;
    this.#rest();
    this.#looksAtMs = atMs;
    this.#cancel = deadline(this.clock, atMs - this.clock.monotonic(), () => {
      this.#look();
    });
  }

  #look(): void {
    this.#rest();
    const now = this.clock.monotonic();
    let nextMs = Infinity;
    for (const watch of this.#watched.all()) nextMs = Math.min(nextMs, watch.look(now));
    if (this.#watched.size > 0) this.lookBy(Math.max(nextMs, now + LOOK_AGAIN_AFTER_MS));
  }

  #rest(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#looksAtMs = Infinity;
  }
}

/** Fires when nothing has happened for too long. `touch` costs a clock reading. */
export class Watch extends Member {
  readonly #watches: Watches;
  #limitMs = Infinity;
  #onSilence: () => void = () => undefined;
  #lastMs = 0;
  #isWatched = false;
  #hasEnded = false;

  constructor(watches: Watches) {
    super();
    this.#watches = watches;
  }

  /**
   * From now on silence of `limitMs` calls `onSilence`, once.
   *
   * @param nowMs for whoever has it at hand.
   */
  expect(limitMs: number, onSilence: () => void, nowMs = this.#watches.clock.monotonic()): void {
    if (this.#hasEnded) return;
    this.#limitMs = limitMs;
    this.#onSilence = onSilence;
    this.#lastMs = nowMs;
    if (!this.#isWatched) this.#watches.add(this);
    this.#isWatched = true;
    this.#watches.lookBy(this.#lastMs + limitMs);
  }

  touch(): void {
    this.#lastMs = this.#watches.clock.monotonic();
  }

  /** Nobody is waited for at the moment. */
  rest(): void {
    this.#limitMs = Infinity;
  }

  /** For good: an upload can go on for a while after the answer to it, and must not be watched again. */
  end(): void {
    this.#hasEnded = true;
    this.#watches.delete(this);
  }

  /** @returns when to look again; Infinity when there is nothing to wait for. */
  look(nowMs: number): number {
    if (this.#lastMs + this.#limitMs < nowMs + EARLY_MS) {
      this.#limitMs = Infinity;
      this.#onSilence();
    }
    return this.#lastMs + this.#limitMs;
  }
}
