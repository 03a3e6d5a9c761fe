import { expect } from 'chai';
import { needsRedis, WITHOUT_REDIS } from '../support/redis.js';
import { killAtRandom } from './support/kill-points.js';

const SEED = Number(process.env.KILL_SEED ?? 1);
const KILLS = 200;

describe(`L: kill -9 of the publisher, Redis and the dispatcher, repeated${WITHOUT_REDIS}`, function () {
  this.timeout(1_800_000);

  needsRedis();

  it(`L01 no event is lost at ${KILLS} random points (seed ${SEED})`, async () => {
    const told = await killAtRandom(SEED, KILLS);
    console.log(`      ${JSON.stringify(told)}`);
    expect(told.acknowledged).to.be.above(1_000);
  });
});
