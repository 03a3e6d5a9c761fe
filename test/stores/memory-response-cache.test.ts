import { MemoryResponseCache } from '../../daemon/store/memory/response-cache.js';
import { TestClock } from '../support/clock.js';
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
});
