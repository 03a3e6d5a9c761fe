import { inRedis } from '../support/cache-model/redis.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { checkHistories } from './cache-histories.js';

/** Number of histories of each kind. cache.model.long.ts runs many more. */
const SEEDS = 25;

describe('the response cache, in random histories of requests, responses, changes, purges and delays', function () {
  this.timeout(0);

  for (const [what, instances, isGated] of [
    ['in memory', 1, false],
    ['in a slow store', 1, true],
    ['in a store shared by two instances', 2, true],
  ] as const) {
    it(`never serves a response that is another project's, truncated, stale or purged, nor to a refused request, ${what}`, async () => {
      await checkHistories(SEEDS, { instances, isGated });
    });
  }

  describe(`in Redis${WITHOUT_REDIS}`, () => {
    let redis: TestRedis;

    before(async function () {
      if (WITHOUT_REDIS) this.skip();
      redis = await TestRedis.start();
    });
    after(async () => {
      if (!WITHOUT_REDIS) await redis.stop();
    });

    for (const instances of [1, 2]) {
      it(`keeps the same guarantees with ${instances === 1 ? 'one instance' : 'two instances'}`, async () => {
        await checkHistories(10, { instances, isGated: true, open: inRedis(redis) });
      });
    }
  });
});
