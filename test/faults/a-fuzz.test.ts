import { expect } from 'chai';
import { fuzz } from './support/fuzz.js';

const MUTANTS = 2_500;
// Always the same here, so that a run can be repeated; a-fuzz.long.ts looks for new ones.
const SEED = 1;

describe('A: mutants of the corpus', function () {
  this.timeout(120_000);

  it(`A38 ${MUTANTS} of them break nothing: the upstream sees whole requests that were admitted, however it reads`, async () => {
    const { forwarded, refused } = await fuzz(SEED, MUTANTS);
    // If all were turned away at the door, nothing was tried.
    expect(forwarded).to.be.above(MUTANTS / 10);
    expect([...refused]).to.include.members([400, 401, 405, 431, 501, 505]);
  });
});
