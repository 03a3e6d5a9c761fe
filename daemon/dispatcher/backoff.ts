/** Exponential backoff with jitter. */
export class Backoff {
  readonly #firstMs: number;
  readonly #maxMs: number;
  #nextMs: number;

  constructor(firstMs: number, maxMs: number) {
    this.#firstMs = firstMs;
    this.#maxMs = maxMs;
    this.#nextMs = firstMs;
  }

  /** @returns the next delay in ms: a random value between half the current delay and all of it. */
  next(): number {
    const waitMs = this.#nextMs * (0.5 + Math.random() / 2);
    this.#nextMs = Math.min(2 * this.#nextMs, this.#maxMs);
    return waitMs;
  }

  reset(): void {
    this.#nextMs = this.#firstMs;
  }
}
