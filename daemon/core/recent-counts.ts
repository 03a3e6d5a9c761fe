/** Number of recent samples: the second largest of 32 is their 95th percentile. */
const SAMPLES = 32;
const PERCENTILE = 0.95;

/** The last few of many counts, and their 95th percentile. */
export class RecentCounts {
  readonly #last: number[] = [];
  #next = 0;
  /** 0 without samples. */
  percentile = 0;

  get size(): number {
    return this.#last.length;
  }

  add(count: number): void {
    this.#last[this.#next] = count;
    this.#next = (this.#next + 1) % SAMPLES;
    const sorted = [...this.#last].sort((a, b) => a - b);
    this.percentile = sorted[Math.ceil(sorted.length * PERCENTILE) - 1] ?? 0;
  }
}

/** The recent counts of each name. When there are more than `max` names, the one that was added to least recently is removed. */
export class CountsByName {
  readonly #max: number;
  readonly #byName = new Map<string, RecentCounts>();

  constructor(max: number) {
    this.#max = max;
  }

  get(name: string): RecentCounts | undefined {
    return this.#byName.get(name);
  }

  add(name: string, count: number): void {
    const counts = this.#byName.get(name) ?? new RecentCounts();
    this.#byName.delete(name);
    this.#byName.set(name, counts);
    counts.add(count);
    if (this.#byName.size > this.#max) this.#byName.delete(this.#byName.keys().next().value ?? '');
  }
}
