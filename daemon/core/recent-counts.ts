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

/** An ID with more names forgets the one that was added first, so that no token pushes out what others have learned. */
const MAX_NAMES = 100;

/** The recent counts of each ID and name, such as a token and a model. When there are more than `max`, those of the ID that was added to least recently are removed. */
export class CountsByName {
  readonly #max: number;
  // Two maps, because to join an ID and a name for one key takes longer than all else here.
  readonly #byId = new Map<string, Map<string, RecentCounts>>();
  #size = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get(id: string, name = ''): RecentCounts | undefined {
    return this.#byId.get(id)?.get(name);
  }

  add(count: number, id: string, name = ''): void {
    const known = this.#byId.get(id);
    const byName = known ?? new Map<string, RecentCounts>();
    // The order matters only once some may soon be removed.
    const isOrdered = this.#size > this.#max / 2;
    if (known && isOrdered) this.#byId.delete(id);
    if (!known || isOrdered) this.#byId.set(id, byName);
    this.#countsIn(byName, name).add(count);
    while (this.#size > this.#max) this.#removeOldest();
  }

  #countsIn(byName: Map<string, RecentCounts>, name: string): RecentCounts {
    let counts = byName.get(name);
    if (counts) return counts;
    counts = new RecentCounts();
    byName.set(name, counts);
    if (byName.size > MAX_NAMES) byName.delete(byName.keys().next().value ?? '');
    else this.#size += 1;
    return counts;
  }

  #removeOldest(): void {
    const [oldest] = this.#byId;
    if (!oldest) return;
    this.#byId.delete(oldest[0]);
    this.#size -= oldest[1].size;
  }
}
