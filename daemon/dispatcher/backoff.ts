/** How long to wait before the next try: twice as long each time, and never in step with others. */
export class Backoff {
  readonly #firstMs: number;
  readonly #longestMs: number;
  #nextMs: number;

  constructor(firstMs: number, longestMs: number) {
    this.#firstMs = firstMs;
    this.#longestMs = longestMs;
    this.#nextMs = firstMs;
  }

  /** @returns ms, between half of what it is and all of it. */
  next(): number {
    const waitMs = this.#nextMs * (0.5 + Math.random() / 2);
    this.#nextMs = Math.min(2 * this.#nextMs, this.#longestMs);
    return waitMs;
  }

  reset(): void {
    this.#nextMs = this.#firstMs;
  }
}
