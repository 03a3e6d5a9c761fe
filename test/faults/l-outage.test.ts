import { expect } from 'chai';
import { WITHOUT_REDIS } from '../support/redis.js';
import { outlast } from './support/outage.js';

const EVENTS = 12_000; // Two minutes of 100 a second.
const LEAST_PER_SECOND = 500; // Five times as fast as they came.
const MOST_GROWTH_MB = 64;

describe(`L: a back end that is down for a while${WITHOUT_REDIS}`, function () {
  this.timeout(180_000);

  before(function () {
    if (WITHOUT_REDIS) this.skip();
  });

  it('L09 costs the dispatcher no memory, and it catches up at five times the rate at which events come', async () => {
    const { delivered, duplicates, perSecond, memoryMb } = await outlast(EVENTS);
    expect(delivered).to.equal(EVENTS);
    expect(duplicates).to.equal(0);
    expect(perSecond).to.be.above(LEAST_PER_SECOND);
    expect(memoryMb.down - memoryMb.before).to.be.below(MOST_GROWTH_MB);
  });
});
