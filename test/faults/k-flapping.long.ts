import { readdirSync } from 'node:fs';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { head } from '../support/raw.js';
import { Relay, TestRedis, needsRedis, WITHOUT_REDIS } from '../support/redis.js';
import { ProxyFixture } from '../support/proxy-fixture.js';

const ROUNDS = 300; // Every two seconds for ten minutes, by a clock that the test moves.
const ROUND_MS = 2_000;
const MOST_TRIES = 600; // Two per round: one that fails and one that succeeds.

describe(`K: Redis goes up and down${WITHOUT_REDIS}`, function () {
  this.timeout(300_000);

  needsRedis();

  it('K06 causes no retry storm and leaks no descriptor', async () => {
    const redis = await TestRedis.start();
    const relay = await Relay.to(redis.port);
    const scene = await ProxyFixture.open({
      REDIS_ADDR: relay.address,
      IP_RATE_LIMIT: '1000000',
      HTTP_CACHE_ENABLED: 'true',
    });
    try {
      const descriptors = () => readdirSync('/proc/self/fd').length;
      const before = descriptors();
      for (let round = 0; round < ROUNDS; round++) {
        relay.isSilent = !relay.isSilent;
        if (relay.isSilent) relay.reset();
        for (let passed = 0; passed < ROUND_MS; passed += 100) {
          scene.daemon.clock.advance(100);
          await new Promise(setImmediate);
        }
        expect((await scene.send(head('GET /v1/models', scene.secret))).status).to.equal(200);
      }
      expect(relay.connections).to.be.below(MOST_TRIES);
      await eventually('descriptors are back', () => descriptors() <= before + 10);
      expect(scene.daemon.logged.filter((line) => /Redis (?:unavailable|connected)/.test(line)).length).to.be.below(
        2 * ROUNDS,
      );
    } finally {
      await scene.close();
      await relay.stop();
      await redis.stop();
    }
  });
});
