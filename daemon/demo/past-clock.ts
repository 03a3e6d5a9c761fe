/**
 * A clock that starts in the past and is moved to the present, while the past of the demo is created. From then on it is the system
 * clock. Until two hours before the present, its monotonic time moves in steps of six hours. Its timers run in real time.
 */
import { MS_PER_UNIT } from '../api/vocabulary.js';
import type { Clock } from '../core/ports.js';
import { realClock } from '../process/clock.js';

// The daemon reads a token again that it has not read for half a minute (monotonic). With a step for each request the start of the demo
// would take three seconds instead of one.
const STEP_MS = 6 * MS_PER_UNIT.h;
const EXACT_MS = 2 * MS_PER_UNIT.h;

const stepped = (ms: number) => (ms > EXACT_MS ? Math.ceil(ms / STEP_MS) * STEP_MS : ms);

export class PastClock implements Clock {
  /** The difference between the present and the time of the clock, in ms. */
  #behindMs: number;
  /** The same for the monotonic time, at first. */
  readonly #firstBehindMs: number;

  /** @param sinceMs the time that it starts with, in ms since the epoch. */
  constructor(sinceMs: number) {
    this.#behindMs = Math.max(0, realClock.now() - sinceMs);
    this.#firstBehindMs = stepped(this.#behindMs);
  }

  now(): number {
    return realClock.now() - this.#behindMs;
  }

  monotonic(): number {
    return realClock.monotonic() + this.#firstBehindMs - stepped(this.#behindMs);
  }

  after(ms: number, action: () => void): () => void {
    return realClock.after(ms, action);
  }

  /** Moves the clock forward, up to the present. An earlier time than its own changes nothing. */
  moveTo(timeMs: number): void {
    this.#behindMs = Math.min(this.#behindMs, Math.max(0, realClock.now() - timeMs));
  }
}
