import { expect } from 'chai';
import { needsRedis, WITHOUT_REDIS } from '../support/redis.js';
import { killAtRandom } from './support/kill-points.js';

const SEED = 6;
const KILLS = 6;

describe(`L: kill -9 of the publisher, Redis and the dispatcher${WITHOUT_REDIS}`, function () {
  this.timeout(180_000);

  needsRedis();

  it(`L01 K11 no event that Redis acknowledged is lost at ${KILLS} points, and duplicates share their ID`, async () => {
    const { acknowledged, kills } = await killAtRandom(SEED, KILLS);
    expect(acknowledged).to.be.above(20);
    expect(Object.values(kills).reduce((sum, it) => sum + it)).to.equal(KILLS);
  });
});
