import { FAILURE_KINDS } from '../failure-kind.js';

/** The counts of a row, in this order. */
export const COUNTS = ['requests', 'cacheHits', ...FAILURE_KINDS, 'promptTokens', 'completionTokens'] as const;
export const FIRST_FAILURE = COUNTS.indexOf(FAILURE_KINDS[0]);
export const PROMPT_TOKENS = COUNTS.indexOf('promptTokens');

const GROWTH = 1.6; // Quantiles are off by up to this factor, typically by a quarter of it.
/** Upper bounds of the buckets for times: 1 ms to 325 s. */
export const BOUNDS_MS: readonly number[] = Array.from({ length: 28 }, (_, power) => GROWTH ** power);
export const BUCKETS = BOUNDS_MS.length;

/** Hours in the window of a day, with the current one. */
export const TOP_DAY_STEPS = 24;

/** Failed requests of a row. */
export function failuresIn(counts: readonly number[]): number {
  return counts.slice(FIRST_FAILURE, PROMPT_TOKENS).reduce((sum, count) => sum + count, 0);
}

/** Model tokens of a row. */
export const modelTokensIn = (counts: readonly number[]): number =>
  (counts[PROMPT_TOKENS] ?? 0) + (counts[PROMPT_TOKENS + 1] ?? 0);
