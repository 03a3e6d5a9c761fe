/** Counting of memory held on behalf of clients. */
import { expect } from 'chai';
import { GatheredBytes } from '../../daemon/core/gathered-bytes.js';
import { HeldMemory, MemoryLimit, PIECE_BYTES } from '../../daemon/core/memory-limit.js';

describe('a memory limit', () => {
  const limitOf = (maxBytes: number, heap = { isFull: false }) =>
    new MemoryLimit({ heap, onDropped: null, maxBytes: () => maxBytes });
  const holdersOf = (limit: MemoryLimit, count: number, dropped: unknown[] = []) =>
    Array.from({ length: count }, () => {
      const holder: HeldMemory = new HeldMemory(limit, () => dropped.push(holder));
      return holder;
    });

  it('counts exactly, however often its holders change', () => {
    const limit = limitOf(1_000_000);
    const holders = holdersOf(limit, 10);
    for (let round = 1; round <= 100; round++) for (const holder of holders) holder.hold(1_000 / round);
    expect(limit.bytes).to.equal(100);
    for (const holder of holders) holder.release();
    expect(limit.bytes).to.equal(0);
  });

  it('drops holders even if all hold the same amount', () => {
    const dropped: unknown[] = [];
    const limit = limitOf(1_000);
    const holders = holdersOf(limit, 11, dropped);
    for (const holder of holders) holder.hold(100);
    expect(dropped).to.deep.equal(holders.slice(0, 2));
    expect(limit.bytes).to.equal(900);
  });

  it('drops those that hold the most, not those that ask for more', () => {
    const dropped: unknown[] = [];
    const limit = limitOf(1_000);
    const [large, ...small] = holdersOf(limit, 8, dropped);
    expect(large!.hold(500)).to.equal(true);
    for (const holder of small) expect(holder.hold(100)).to.equal(true);
    expect(dropped).to.deep.equal([large]);
    const [greedy] = holdersOf(limit, 1, dropped);
    expect(greedy!.hold(900)).to.equal(false);
    expect(dropped).to.deep.equal([large, greedy]);
    expect(limit.bytes).to.equal(700);
  });

  it('drops the largest holders while the heap is full, although the limit is not reached', () => {
    const dropped: unknown[] = [];
    const heap = { isFull: false };
    const limit = limitOf(100e6, heap);
    const [large, small, late] = holdersOf(limit, 3, dropped);
    large!.hold(5e6);
    small!.hold(1e6);
    heap.isFull = true;
    late!.hold(100);
    expect(dropped).to.deep.equal([large]);
  });
});

describe('gathered bytes', () => {
  it('cost little more than their size, however small the pieces were', () => {
    const gathered = new GatheredBytes();
    for (let i = 0; i < 10_000; i++) gathered.add(Buffer.from([i % 256]));
    expect(gathered.memory).to.be.below(2 * 10_000 + PIECE_BYTES);
    expect(gathered.take()).to.deep.equal(Buffer.from(Array.from({ length: 10_000 }, (_, i) => i % 256)));
    expect(gathered.length).to.equal(0);
  });

  it('come out as they went in, whatever sizes they had', () => {
    const gathered = new GatheredBytes();
    const sizes = [1, 5_000, 1, 1, 70_000, 4_095, 4_096, 0, 3, 100_000, 2];
    const pieces = sizes.map((size, i) => Buffer.alloc(size, i + 1));
    for (let round = 0; round < 2; round++) {
      for (const piece of pieces) gathered.add(piece);
      expect(gathered.length).to.equal(Buffer.concat(pieces).length);
      expect(gathered.memory).to.be.within(gathered.length, 2 * gathered.length);
      expect(gathered.take().equals(Buffer.concat(pieces))).to.equal(true);
      expect([gathered.length, gathered.memory]).to.deep.equal([0, 0]);
    }
  });

  it('are not copied if they are a single piece', () => {
    const gathered = new GatheredBytes();
    const piece = Buffer.from('whole');
    gathered.add(piece);
    expect(gathered.take().buffer).to.equal(piece.buffer);
  });
});
