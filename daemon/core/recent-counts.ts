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
    // Of so few samples it is the largest or the second largest. Sorting them takes a twentieth of the time of a request.
    let [largest, second] = [0, 0];
    for (const each of this.#last) {
      if (each > largest) [largest, second] = [each, largest];
      else if (each > second) second = each;
    }
    const { length } = this.#last;
    this.percentile = length - Math.ceil(length * PERCENTILE) === 0 ? largest : second;
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
    const known = this.#byName.get(name);
    const counts = known ?? new RecentCounts();
    // The order matters only once names may soon be removed.
    const isOrdered = this.#byName.size > this.#max / 2;
    if (known && isOrdered) this.#byName.delete(name);
    if (!known || isOrdered) this.#byName.set(name, counts);
    counts.add(count);
    if (this.#byName.size > this.#max) this.#byName.delete(this.#byName.keys().next().value ?? '');
  }
}
