import { expect } from 'chai';
import { inRedis } from '../support/cache-model/redis.js';
import { type HistoryOptions, runHistory, type Totals } from '../support/cache-model/history.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';

const STEPS = 80;
/** How many histories of each kind; more by hand, for hours. */
const SEEDS = Number(process.env.CACHE_MODEL_SEEDS ?? 150);
const FIRST_SEED = Number(process.env.CACHE_MODEL_FIRST_SEED ?? 1);

async function runHistories(count: number, options: Omit<HistoryOptions, 'seed' | 'steps'>): Promise<Totals> {
  const totals = { requests: 0, hits: 0, uses: 0, refusals: 0, left: 0 };
  for (let seed = FIRST_SEED; seed < FIRST_SEED + count; seed++) {
    const found = await runHistory({ ...options, seed, steps: STEPS });
    for (const name of Object.keys(totals) as (keyof Totals)[]) totals[name] += found[name];
  }
  return totals;
}

describe('the response cache, in random histories of requests, answers, changes, purges and time', function () {
  this.timeout(0);

  const expectBusy = ({ requests, hits, uses, refusals, left }: Totals, histories: number) => {
    expect(hits + uses + refusals + left).to.equal(requests);
    for (const each of [hits, uses, refusals]) expect(each).to.be.greaterThan(histories / 2);
    expect(left).to.be.greaterThan(histories / 10);
  };

  for (const [what, instances, isGated] of [
    ['in memory', 1, false],
    ['in a store that takes its time', 1, true],
    ['in a store that two instances share', 2, true],
  ] as const) {
    it(`answers nobody with what is another's, cut, old or purged, nor anybody who is to be refused, ${what}`, async () => {
      expectBusy(await runHistories(SEEDS, { instances, isGated }), SEEDS);
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
        const histories = Math.ceil(SEEDS / 5);
        const totals = await runHistories(histories, { instances, isGated: true, open: inRedis(redis) });
        expectBusy(totals, histories);
      });
    }
  });
});
