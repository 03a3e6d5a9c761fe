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
});
