import { expect } from 'chai';
import { needsRedis, WITHOUT_REDIS } from '../support/redis.js';
import { runBackendOutage } from './support/backend-outage.js';

const EVENTS = 360_000; // An hour of 100 events a second.
const LEAST_PER_SECOND = 500;
const MOST_GROWTH_MB = 64;

describe(`L: a backend that is down for an hour${WITHOUT_REDIS}`, function () {
  this.timeout(1_800_000);

  needsRedis();

  it('L09 L16 memory of the dispatcher stays flat, and it catches up at five times the rate of new events', async () => {
    const figures = await runBackendOutage(EVENTS);
    console.log(`      ${JSON.stringify(figures)}`);
    expect(figures.delivered).to.equal(EVENTS);
    expect(figures.duplicates).to.equal(0);
    expect(figures.perSecond).to.be.above(LEAST_PER_SECOND);
    expect(figures.memoryMb.down - figures.memoryMb.before).to.be.below(MOST_GROWTH_MB);
    expect(figures.memoryMb.after - figures.memoryMb.before).to.be.below(2 * MOST_GROWTH_MB);
  });
});
