import { expect } from 'chai';
import { needsRedis, WITHOUT_REDIS } from '../support/redis.js';
import { runBackendOutage } from './support/backend-outage.js';

const EVENTS = 12_000; // Two minutes of 100 events a second.
const LEAST_PER_SECOND = 500; // Five times the rate of new events.
const MOST_GROWTH_MB = 64;

describe(`L: a backend that is down for a while${WITHOUT_REDIS}`, function () {
  this.timeout(180_000);

  needsRedis();

  it('L09 memory of the dispatcher stays flat, and it catches up at five times the rate of new events', async () => {
    const { delivered, duplicates, perSecond, memoryMb } = await runBackendOutage(EVENTS);
    expect(delivered).to.equal(EVENTS);
    expect(duplicates).to.equal(0);
    expect(perSecond).to.be.above(LEAST_PER_SECOND);
    expect(memoryMb.down - memoryMb.before).to.be.below(MOST_GROWTH_MB);
  });
});
