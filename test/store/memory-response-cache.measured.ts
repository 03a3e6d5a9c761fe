import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { MemoryResponseCache } from '../../daemon/store/memory/response-cache.js';
import type { Filled } from '../faults/support/fill-cache.js';
import { TestClock } from '../support/clock.js';
import { behavesAsCacheStore } from './response-cache.js';

const FILL_CACHE = join(import.meta.dirname, '../faults/support/fill-cache.js');

describe('the cache in memory', () => {
  behavesAsCacheStore(() => {
    const clock = new TestClock({ standsStill: true });
    const cache = new MemoryResponseCache({ current: { httpCacheMaxBytes: 1_000_000 } }, clock);
    return {
      cache,
      pass: (ms) => {
        clock.advance(ms);
      },
    };
  });

  for (const bodyBytes of [0, 100, 2_000]) {
    // In a separate process: here, garbage of other tests would distort the measurement.
    it(`uses no more memory than it counts, with small responses as with large ones (${bodyBytes} bytes each)`, async () => {
      const { stdout } = await promisify(execFile)(process.execPath, [
        FILL_CACHE,
        ...[1e9, bodyBytes, 20_000].map(String),
      ]);
      const { entries, bytes, held } = JSON.parse(stdout) as Filled;
      expect(entries).to.equal(20_000);
      expect(held).to.be.within(20_000 * bodyBytes, bytes);
    });
  }
});
