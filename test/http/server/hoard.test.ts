/** How the memory is counted that strangers hold. */
import { expect } from 'chai';
import { type Holder, Hoard } from '../../../daemon/http/hoard.js';

describe('a hoard', () => {
  const holderOf = (dropped: unknown[]): Holder => {
    const holder = { sinceMs: 0, bytes: 0, drop: () => dropped.push(holder) };
    return holder;
  };

  it('counts without an error, however often its holders change (finding B1)', () => {
    const hoard = new Hoard(1_000_000, () => undefined);
    const holders = Array.from({ length: 10 }, () => holderOf([]));
    for (let round = 1; round <= 100; round++) for (const holder of holders) hoard.hold(holder, 1_000 / round);
    expect(hoard.bytes).to.equal(100);
    for (const holder of holders) hoard.letGo(holder);
    expect(hoard.bytes).to.equal(0);
  });

  it('makes room among those that hold the same (finding B1)', () => {
    const dropped: unknown[] = [];
    const hoard = new Hoard(1_000, () => undefined);
    const holders = Array.from({ length: 11 }, () => holderOf(dropped));
    for (const holder of holders) hoard.hold(holder, 100);
    expect(dropped).to.deep.equal(holders.slice(0, 2));
    expect(hoard.bytes).to.equal(900);
  });
});
