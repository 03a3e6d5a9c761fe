/** Counting of memory held on behalf of clients. */
import { expect } from 'chai';
import { type MemoryHolder, MemoryLimit } from '../../../daemon/http/memory-limit.js';

describe('a memory limit', () => {
  const holderOf = (dropped: unknown[]): MemoryHolder => {
    const holder = { sinceMs: 0, bytes: 0, drop: () => dropped.push(holder) };
    return holder;
  };

  it('counts exactly, however often its holders change (finding B1)', () => {
    const hoard = new MemoryLimit(1_000_000, () => undefined);
    const holders = Array.from({ length: 10 }, () => holderOf([]));
    for (let round = 1; round <= 100; round++) for (const holder of holders) hoard.hold(holder, 1_000 / round);
    expect(hoard.bytes).to.equal(100);
    for (const holder of holders) hoard.release(holder);
    expect(hoard.bytes).to.equal(0);
  });

  it('drops holders even if all hold the same amount (finding B1)', () => {
    const dropped: unknown[] = [];
    const hoard = new MemoryLimit(1_000, () => undefined);
    const holders = Array.from({ length: 11 }, () => holderOf(dropped));
    for (const holder of holders) hoard.hold(holder, 100);
    expect(dropped).to.deep.equal(holders.slice(0, 2));
    expect(hoard.bytes).to.equal(900);
  });
});
