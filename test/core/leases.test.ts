import { expect } from 'chai';
import { leaseTarget } from '../../daemon/core/account.js';

const BUSY = 1_000_000;

describe('the number of units an instance may lease', () => {
  it('is 1/16 of the units left, up to 256, for a token that is not busy', () => {
    expect([0, 1, 31, 32, 4_095, 4_096, 2e9].map((left) => leaseTarget(left, 0))).to.deep.equal([
      1, 1, 1, 2, 255, 256, 256,
    ]);
  });

  it('is the number of uses between two ticks for a busy token', () => {
    expect(leaseTarget(2e9, 3_700)).to.equal(3_700);
  });

  it('never exceeds the larger of 256 and 1/256 of the units left, however busy the token is', () => {
    for (const left of [0, 1, 100, 4_096, 65_536, 65_537, 1_000_000, 2e9]) {
      const target = leaseTarget(left, BUSY);
      expect(target, String(left)).to.be.at.most(Math.max(1, 256, left / 256));
      expect(target, String(left)).to.be.at.most(Math.max(1, left / 16));
    }
  });
});
