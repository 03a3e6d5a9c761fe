/** What the groups of a report are sorted by. The loops are short functions without closures, which are compiled after few calls. */
import { quantile } from '../histogram.js';
import type { TopQuery } from '../ports.js';
import { BOUNDS_MS, BUCKETS } from './counts.js';
import { CELLS_PER_SLICE, type Step } from './step.js';

export const QUANTILES = { p50: 0.5, p95: 0.95 } as const;
/** Of groups with equally many failures, the one with more requests comes first. */
const REQUEST_PER_FAILURE = 2 ** -32;

/** Of the cells that are being added. */
const VALUES = new Float64Array(CELLS_PER_SLICE);
const TOKENS = new Int32Array(CELLS_PER_SLICE);

export class SortKeys {
  readonly #keys: Float64Array;
  readonly #sort: TopQuery['sort'];
  readonly #lastUseOf: ((token: number) => number) | null;
  /** Of each group: its responses in each bucket. */
  readonly #times: Uint32Array;

  /**
   * @param keys of each group, NaN at first, because the number may be no group.
   * @param lastUseOf when a token was last used, if that is known better than from the steps.
   */
  constructor(sort: TopQuery['sort'], keys: Float64Array, lastUseOf: ((token: number) => number) | null) {
    this.#keys = keys;
    this.#sort = sort;
    this.#lastUseOf = lastUseOf;
    this.#times = new Uint32Array(sort === 'p50' || sort === 'p95' ? keys.length * BUCKETS : 0);
  }

  /** Adds the cells that begin with `from`, at most `CELLS_PER_SLICE`. @param groups of each of them; negative if it has none. */
  add(step: Step, from: number, groups: Int32Array): void {
    const values = VALUES.subarray(0, groups.length);
    switch (this.#sort) {
      case 'p50':
      case 'p95':
        addTimes(this.#times, step, from, groups);
        addTo(this.#keys, groups, values.fill(0), 1);
        return;
      case 'last_used':
        step.readLastMs(from, values);
        if (this.#lastUseOf) useLater(values, step, from, this.#lastUseOf);
        raise(this.#keys, groups, values);
        return;
      case 'tokens':
        step.readModelTokens(from, values);
        addTo(this.#keys, groups, values, 1);
        return;
      case 'requests':
        step.readRequests(from, values);
        addTo(this.#keys, groups, values, 1);
        return;
      case 'errors':
        step.readRequests(from, values);
        addTo(this.#keys, groups, values, REQUEST_PER_FAILURE);
        step.readFailures(from, values);
        addTo(this.#keys, groups, values, 1);
    }
  }

  /** Call when all cells have been added. @returns the number of groups. */
  *complete(): Generator<void, number> {
    const sort = this.#sort;
    let count = 0;
    for (let from = 0; from < this.#keys.length; from += CELLS_PER_SLICE) {
      const keys = this.#keys.subarray(from, from + CELLS_PER_SLICE);
      if (sort === 'p50' || sort === 'p95') toQuantiles(keys, this.#times.subarray(from * BUCKETS), QUANTILES[sort]);
      count += numbersIn(keys);
      yield;
    }
    return count;
  }
}

function toQuantiles(keys: Float64Array, times: Uint32Array, part: number): void {
  for (let n = 0; n < keys.length; n += 1) {
    if (Number.isNaN(keys[n])) continue;
    keys[n] = quantile(BOUNDS_MS, times.subarray(n * BUCKETS, (n + 1) * BUCKETS), part) ?? -1;
  }
}

function numbersIn(keys: Float64Array): number {
  let count = 0;
  for (let n = 0; n < keys.length; n += 1) if (!Number.isNaN(keys[n])) count += 1;
  return count;
}

function addTo(keys: Float64Array, groups: Int32Array, values: Float64Array, factor: number): void {
  for (let n = 0; n < groups.length; n += 1) {
    const group = groups[n] ?? -1;
    // NaN || 0 is 0.
    if (group >= 0) keys[group] = (keys[group] || 0) + factor * (values[n] ?? 0);
  }
}

function raise(keys: Float64Array, groups: Int32Array, values: Float64Array): void {
  for (let n = 0; n < groups.length; n += 1) {
    const group = groups[n] ?? -1;
    if (group >= 0) keys[group] = Math.max(keys[group] || 0, values[n] ?? 0);
  }
}

function useLater(times: Float64Array, step: Step, from: number, lastUseOf: (token: number) => number): void {
  const tokens = TOKENS.subarray(0, times.length);
  step.readTokens(from, tokens);
  for (let n = 0; n < times.length; n += 1) times[n] = Math.max(times[n] ?? 0, lastUseOf(tokens[n] ?? 0));
}

function addTimes(times: Uint32Array, step: Step, from: number, groups: Int32Array): void {
  for (let n = 0; n < groups.length; n += 1) {
    const group = groups[n] ?? -1;
    if (group >= 0) step.addTimes(from + n, times, group * BUCKETS);
  }
}
