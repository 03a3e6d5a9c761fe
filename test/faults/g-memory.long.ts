import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Filled } from './support/fill-cache.js';

const PROGRAM = join(import.meta.dirname, 'support/fill-cache.js');
const MAX_BYTES = 64e6;
// The garbage collector lets the heap grow to a multiple of the live data. Measured at this pace: 4.8 times HTTP_CACHE_MAX_BYTES with
// bodies of 100 bytes, 3.9 times with 2,000; through a daemon, at 1,200 requests/s, 1.5 times.
const MOST_RESIDENT_BYTES = 6 * MAX_BYTES;

describe('G: memory of the cache after a million different requests', function () {
  this.timeout(600_000);

  for (const bodyBytes of [100, 2_000]) {
    it(`G14 bodies of ${bodyBytes} bytes: the cache holds up to HTTP_CACHE_MAX_BYTES, and resident memory is bounded`, async () => {
      const { stdout } = await promisify(execFile)(process.execPath, [
        PROGRAM,
        ...[MAX_BYTES, bodyBytes, 1_000_000].map(String),
      ]);
      const { entries, bytes, held, resident } = JSON.parse(stdout) as Filled;
      expect(bytes, 'counted').to.be.within(0.99 * MAX_BYTES, MAX_BYTES);
      expect(held, 'held').to.be.within(entries * bodyBytes, MAX_BYTES);
      expect(resident, 'resident').to.be.below(MOST_RESIDENT_BYTES);
    });
  }
});
