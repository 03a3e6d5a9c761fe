import { expect } from 'chai';
import { MemoryRateWindows } from '../../daemon/store/memory/rate-windows.js';
import { TestClock } from '../support/clock.js';
import { behavesAsRateWindows } from './rate-windows.js';

const MINUTE_MS = 60_000;

describe('rate windows in memory', () => {
  behavesAsRateWindows(() => {
    const clock = new TestClock({ standsStill: true });
    return {
      windows: new MemoryRateWindows(clock),
      windowMs: MINUTE_MS,
      pass: (ms) => {
        clock.advance(ms);
      },
    };
  });

  describe('beyond the contract of the port', () => {
    let clock: TestClock;
    beforeEach(() => {
      clock = new TestClock({ standsStill: true });
    });

    it('apply a changed length at once', () => {
      const windows = new MemoryRateWindows(clock);
      const take = (windowMs: number) => windows.take('a', { limit: 1, windowMs }).isAllowed;
      expect(take(MINUTE_MS)).to.equal(true);
      clock.advance(1_000);
      expect(take(1_001)).to.equal(false);
      expect(take(1_000)).to.equal(true);
    });

    it('evict the least recently used key when full, and no busy one', () => {
      const windows = new MemoryRateWindows(clock, 3);
      const take = (key: string) => windows.take(key, { limit: 1, windowMs: MINUTE_MS }).isAllowed;
      for (const key of ['busy', 'idle', 'c']) take(key);
      expect(take('busy')).to.equal(false);
      take('d');
      expect([windows.size, take('busy'), take('idle')]).to.deep.equal([3, false, true]);
    });

    it('allocate no memory and no timer before the first request', () => {
      const windows = new MemoryRateWindows(clock);
      expect([windows.size, clock.pending]).to.deep.equal([0, 0]);
      windows.take('a', { limit: 1, windowMs: MINUTE_MS });
      expect([windows.size, clock.pending]).to.deep.equal([1, 0]);
    });
  });
});
