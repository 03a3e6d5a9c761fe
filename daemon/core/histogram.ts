/** How many values fell between which bounds. It takes the same memory whatever comes, and some tens of nanoseconds for a value. */
export class Histogram {
  readonly bounds: readonly number[];
  /** One for each bound, the values up to it and above the one before; the last is for those above all bounds. */
  readonly counts: Float64Array;
  sum = 0;

  /** @param bounds rising. */
  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const bucket = bucketOf(this.bounds, value);
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.sum += value;
  }

  get total(): number {
    return this.counts.reduce((total, count) => total + count, 0);
  }
}

/** The place of the first bound that is not below `value`; behind the last where there is none. */
export function bucketOf(bounds: readonly number[], value: number): number {
  let low = 0;
  let high = bounds.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (value <= (bounds[middle] ?? Infinity)) high = middle;
    else low = middle + 1;
  }
  return low;
}
