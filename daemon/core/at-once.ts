/** Work of which only so much is done at once, so that it takes so much memory at most. Who comes later waits, in the order they came. */
export class AtOnce {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** @param most how many run at once. */
  constructor(most: number) {
    this.#free = most;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}
