import { expect } from 'chai';
import { fuzz } from './support/fuzz.js';

const MUTANTS = 2_500;
// A fixed seed, so that every run is the same. a-fuzz.long.ts looks for new mutants.
const SEED = 1;

describe('A: mutants of the corpus', function () {
  this.timeout(120_000);

  it(`A38 ${MUTANTS} mutated requests: the upstream sees only complete, admitted requests, with either of two parsers`, async () => {
    const { forwarded, refused } = await fuzz(SEED, MUTANTS);
    // If all mutants were refused early, nothing would have been tested.
    expect(forwarded).to.be.above(MUTANTS / 10);
    expect([...refused]).to.include.members([400, 401, 405, 431, 501, 505]);
  });
});
