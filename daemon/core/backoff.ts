/** Exponential backoff with jitter, so that many that lost the same server do not come back at the same time. */
export class Backoff {
  readonly #firstMs: number;
  readonly #maxMs: number;
  #nextMs: number;

  constructor(firstMs: number, maxMs: number) {
    this.#firstMs = firstMs;
    this.#maxMs = maxMs;
    this.#nextMs = firstMs;
  }

  /** @returns the next delay in ms. */
  next(): number {
    const waitMs = withJitter(this.#nextMs);
    this.#nextMs = Math.min(2 * this.#nextMs, this.#maxMs);
    return waitMs;
  }

  reset(): void {
    this.#nextMs = this.#firstMs;
  }
}

/** @returns a random value between half the delay and all of it. */
export const withJitter = (delayMs: number): number => delayMs * (0.5 + Math.random() / 2);
