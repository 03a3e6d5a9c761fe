import type { Clock } from '../core/ports.js';

/**
 * One timer a request that fires when nothing has happened for too long. `touch` costs a clock reading: the
 * timer is not moved, it looks at the time when it fires and goes on waiting if it was early.
 */
export class Watch {
  #limitMs = 0;
  #onSilence: () => void = () => undefined;
  #lastMs = 0;
  #firesAtMs = Infinity;
  #cancel: (() => void) | null = null;
  #hasEnded = false;

  constructor(private readonly clock: Clock) {}

  /** From now on silence of `limitMs` calls `onSilence`, once. */
  expect(limitMs: number, onSilence: () => void): void {
    if (this.#hasEnded) return;
    this.#limitMs = limitMs;
    this.#onSilence = onSilence;
    this.touch();
    if (this.#lastMs + limitMs < this.#firesAtMs) this.#arm(this.#lastMs, limitMs);
  }

  touch(): void {
    this.#lastMs = this.clock.monotonic();
  }

  /** Nobody is waited for at the moment. The timer stays, for there will be somebody soon. */
  rest(): void {
    this.#limitMs = Infinity;
  }

  /** For good: an upload can go on for a while after the answer to it, and must not set a timer again. */
  end(): void {
    this.#hasEnded = true;
    this.#cancel?.();
    this.#cancel = null;
  }

  #arm(nowMs: number, afterMs: number): void {
    this.#cancel?.();
    this.#firesAtMs = nowMs + afterMs;
    this.#cancel = this.clock.after(afterMs, () => {
      this.#cancel = null;
      this.#firesAtMs = Infinity;
      const now = this.clock.monotonic();
      const restMs = this.#lastMs + this.#limitMs - now;
      if (restMs <= 0) this.#onSilence();
      else if (restMs < Infinity) this.#arm(now, restMs);
    });
  }
}
