/** Runs random histories of the response cache, for the quick suite and the long one. */
import { expect } from 'chai';
import { type HistoryOptions, runHistory, type Totals } from '../support/cache-model/history.js';

const STEPS = 80;

/** @throws when a history violates an invariant, or when all together did too little. */
export async function checkHistories(
  count: number,
  options: Omit<HistoryOptions, 'seed' | 'steps'>,
  firstSeed = 1,
): Promise<void> {
  const totals: Totals = { requests: 0, hits: 0, uses: 0, refusals: 0, left: 0 };
  for (let seed = firstSeed; seed < firstSeed + count; seed++) {
    const found = await runHistory({ ...options, seed, steps: STEPS });
    for (const name of Object.keys(totals) as (keyof Totals)[]) totals[name] += found[name];
  }
  const { requests, hits, uses, refusals, left } = totals;
  expect(hits + uses + refusals + left).to.equal(requests);
  for (const each of [hits, uses, refusals]) expect(each).to.be.greaterThan(count / 2);
  expect(left).to.be.greaterThan(count / 10);
}
