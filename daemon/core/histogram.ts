/** Histogram with fixed bounds: constant memory, and a few tens of nanoseconds per value. */
export class Histogram {
  readonly bounds: readonly number[];
  /** One count per bound, for values up to it and above the previous one; the last count is for values above all bounds. */
  readonly counts: Float64Array;
  sum = 0;

  /** @param bounds in increasing order. */
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

/** Index of the first bound that is not below `value`; `bounds.length` if there is none. */
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

/** Quantile `part` of the values that were counted, interpolated within its bucket; null without values. */
export function quantile(bounds: readonly number[], counts: ArrayLike<number>, part: number): number | null {
  let total = 0;
  for (let bucket = 0; bucket < counts.length; bucket += 1) total += counts[bucket] ?? 0;
  if (total === 0) return null;
  let below = 0;
  for (let bucket = 0; bucket < counts.length; bucket += 1) {
    const count = counts[bucket] ?? 0;
    if (count > 0 && below + count >= total * part) {
      const lower = bounds[bucket - 1] ?? 0;
      const upper = bounds[bucket] ?? lower;
      return lower + ((upper - lower) * (total * part - below)) / count;
    }
    below += count;
  }
  return null;
}
