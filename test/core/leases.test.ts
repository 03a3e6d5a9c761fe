import { expect } from 'chai';
import { leaseTarget } from '../../daemon/core/account.js';

const BUSY = 1_000_000;

describe('how much of a cap an instance may hold', () => {
  it('is a sixteenth of what is left, 256 at most, for a token that is not busy', () => {
    expect([0, 1, 31, 32, 4_095, 4_096, 2e9].map((left) => leaseTarget(left, 0))).to.deep.equal([
      1, 1, 1, 2, 255, 256, 256,
    ]);
  });

  it('is what a busy token uses between two ticks', () => {
    expect(leaseTarget(2e9, 3_700)).to.equal(3_700);
  });

  it('is never more than 256 or 1/256 of what is left, however busy the token is', () => {
    for (const left of [0, 1, 100, 4_096, 65_536, 65_537, 1_000_000, 2e9]) {
      const target = leaseTarget(left, BUSY);
      expect(target, String(left)).to.be.at.most(Math.max(1, 256, left / 256));
      expect(target, String(left)).to.be.at.most(Math.max(1, left / 16));
    }
  });
});
