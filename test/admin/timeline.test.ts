import { expect } from 'chai';
import { marksOf, ticksUpTo } from '../../daemon/admin/parts/timeline.js';

const HOUR_MS = 3_600_000;

describe('the axes of a chart in the Admin UI', () => {
  it('have whole numbers from 0 to at least the largest value', () => {
    expect(ticksUpTo(0)).to.deep.equal([0, 1]);
    expect(ticksUpTo(1)).to.deep.equal([0, 1]);
    expect(ticksUpTo(7)).to.deep.equal([0, 2, 4, 6, 8]);
    expect(ticksUpTo(18)).to.deep.equal([0, 5, 10, 15, 20]);
    expect(ticksUpTo(4_001)).to.deep.equal([0, 2_000, 4_000, 6_000]);
    for (let most = 0; most < 3_000_000; most = Math.ceil(most * 1.1) + 1) {
      const ticks = ticksUpTo(most);
      expect(ticks.length, String(most)).to.be.within(2, 6);
      expect(ticks.at(-1)! >= most && ticks.every(Number.isInteger), String(most)).to.equal(true);
    }
  });

  it('have up to seven times, at midnight or at whole hours', () => {
    const fromMs = Date.UTC(2030, 0, 31, 5);
    const after = (hours: number, step: 'hour' | 'day') => ({ fromMs, toMs: fromMs + hours * HOUR_MS, step });
    const labels = (hours: number, step: 'hour' | 'day') => marksOf(after(hours, step)).map(({ label }) => label);
    expect(labels(24, 'hour')).to.deep.equal(['06:00', '12:00', '18:00', '1 Feb']);
    expect(labels(7 * 24, 'hour')).to.deep.equal(['1 Feb', '2 Feb', '3 Feb', '4 Feb', '5 Feb', '6 Feb', '7 Feb']);
    for (const days of [1, 2, 30, 90, 365, 366]) {
      expect(marksOf(after(days * 24, 'day')).length, `${days} days`).to.be.within(1, 7);
    }
  });
});
