import { inRedis } from '../support/cache-model/redis.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { checkHistories } from './cache-histories.js';

/** How many histories of each kind. Many more are in cache.model.long.ts. */
const SEEDS = 25;

describe('the response cache, in random histories of requests, answers, changes, purges and time', function () {
  this.timeout(0);

  for (const [what, instances, isGated] of [
    ['in memory', 1, false],
    ['in a store that takes its time', 1, true],
    ['in a store that two instances share', 2, true],
  ] as const) {
    it(`answers nobody with what is another's, cut, old or purged, nor anybody who is to be refused, ${what}`, async () => {
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
      it(`does the same with ${instances === 1 ? 'one instance' : 'two that share it'}`, async () => {
        await checkHistories(10, { instances, isGated: true, open: inRedis(redis) });
      });
    }
  });
});
