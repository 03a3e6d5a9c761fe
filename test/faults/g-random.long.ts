import { inRedis } from '../support/cache-model/redis.js';
import { runHistory } from '../support/cache-model/history.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';

/** Other seeds than those of the quick suite. */
const FIRST_SEED = 100_000;

describe('the response cache, in thousands of random histories', function () {
  this.timeout(0);

  for (const [what, instances, isGated] of [
    ['in memory', 1, false],
    ['in a slow store', 1, true],
    ['in a store that two instances share', 2, true],
  ] as const) {
    it(`no client gets another project's, a cut, an outdated or a purged response: ${what}`, async () => {
      for (let seed = FIRST_SEED; seed < FIRST_SEED + 3_000; seed++) {
        await runHistory({ seed, steps: 80, instances, isGated });
      }
    });
  }

  it(`no client gets another project's, a cut, an outdated or a purged response: in Redis${WITHOUT_REDIS}`, async function () {
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
