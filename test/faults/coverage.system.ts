import { expect } from 'chai';
import { allIds, idsAtFront } from './matrix.js';
import { uncovered, whatCovers } from './support/coverage.js';

describe('test/faults.md', () => {
  it('has for each row a test, or a reason in README.md why there is none', async function () {
    this.timeout(60_000);
    expect(uncovered(await whatCovers())).to.deep.equal([]);
  });

  it('is read completely, and lists each row once', () => {
    expect(allIds()).to.have.length.above(340);
    expect(new Set(allIds())).to.have.lengthOf(allIds().length);
    expect([allIds().at(0), allIds().at(-1)]).to.deep.equal(['A01', 'S12']);
  });

  it('row IDs are read only from the beginning of a title', () => {
    expect(idsAtFront('C03 C04: cuts the client off')).to.deep.equal(['C03', 'C04']);
    expect(idsAtFront('answers as C03 does')).to.deep.equal([]);
  });
});
