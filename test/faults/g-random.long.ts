import { inRedis } from '../support/cache-model/redis.js';
import { runHistory } from '../support/cache-model/history.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';

/** Other seeds than the quick suite has. */
const FIRST_SEED = 100_000;

describe('the response cache, in thousands of random histories', function () {
  this.timeout(0);

  for (const [what, instances, isGated] of [
    ['in memory', 1, false],
    ['in a store that takes its time', 1, true],
    ['in a store that two instances share', 2, true],
  ] as const) {
    it(`answers nobody with what is another's, cut, old or purged, ${what}`, async () => {
      for (let seed = FIRST_SEED; seed < FIRST_SEED + 3_000; seed++) {
        await runHistory({ seed, steps: 80, instances, isGated });
      }
    });
  }

  it(`answers nobody with what is another's, cut, old or purged, in Redis${WITHOUT_REDIS}`, async function () {
    if (WITHOUT_REDIS) this.skip();
    const redis = await TestRedis.start();
    try {
      for (let seed = FIRST_SEED; seed < FIRST_SEED + 1_000; seed++) {
        await runHistory({ seed, steps: 80, instances: 1 + (seed % 2), isGated: true, open: inRedis(redis) });
      }
    } finally {
      await redis.stop();
    }
  });
});
