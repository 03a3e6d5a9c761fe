import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import { fuzz } from './support/fuzz.js';

const MUTANTS = 200_000;
const WITHIN_MS = 30 * 60_000;
// FUZZ_SEED repeats a run.
const SEED = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31));

describe('A: many mutants of the corpus', function () {
  this.timeout(WITHIN_MS);

  it(`A38 ${MUTANTS} mutated requests: no crash, and nothing is smuggled`, async () => {
    expect((await fuzz(SEED, MUTANTS)).forwarded).to.be.above(MUTANTS / 10);
  });
});
