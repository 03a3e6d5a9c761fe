import { expect } from 'chai';
import { allIds, idsAtFront } from './matrix.js';
import { uncovered, whatCovers } from './support/coverage.js';

describe('the matrix of faults', () => {
  it('has a test, or a reason for none, for each of its rows', async function () {
    this.timeout(60_000);
    expect(uncovered(await whatCovers())).to.deep.equal([]);
  });

  it('is read from docs/faults.md, whole and each row once', () => {
    expect(allIds()).to.have.length.above(340);
    expect(new Set(allIds())).to.have.lengthOf(allIds().length);
    expect([allIds().at(0), allIds().at(-1)]).to.deep.equal(['A01', 'S12']);
  });

  it('is read from the front of titles only', () => {
    expect(idsAtFront('C03 C04: cuts the client off')).to.deep.equal(['C03', 'C04']);
    expect(idsAtFront('answers as C03 does')).to.deep.equal([]);
  });
});
