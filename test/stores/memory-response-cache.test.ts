import { expect } from 'chai';
import { MemoryResponseCache } from '../../daemon/store/memory/response-cache.js';
import { TestClock } from '../support/clock.js';
import { heldAfterCollection } from '../faults/support/heap.js';
import { putDistinct } from '../support/distinct-answers.js';
import { behavesAsCacheStore } from './response-cache.js';

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
    it(`holds no more than it counts, of small answers as of large ones (${bodyBytes} bytes each)`, async () => {
      const clock = new TestClock({ standsStill: true });
      const cache = new MemoryResponseCache({ current: { httpCacheMaxBytes: 1e9 } }, clock);
      putDistinct(cache, { from: 0, count: 100, bodyBytes }); // What is made at the first is not what is measured.
      const counted = (await cache.size()).bytes;
      const held = heldAfterCollection();
      putDistinct(cache, { from: 100, count: 20_000, bodyBytes });
      const more = heldAfterCollection() - held;
      const { entries, bytes } = await cache.size();
      expect(entries).to.equal(20_100);
      expect(more).to.be.within(20_000 * bodyBytes, bytes - counted);
    });
  }
});
