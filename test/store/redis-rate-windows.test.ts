import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { RedisConnection } from '../../daemon/store/redis/connection.js';
import { RedisRateWindows } from '../../daemon/store/redis/rate-windows.js';
import { TestClock } from '../support/clock.js';
import { connectionTo, TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { behavesAsRateWindows } from './rate-windows.js';

const WINDOW_MS = 10_000;

describe(`rate windows in Redis${WITHOUT_REDIS}`, function () {
  let redis: TestRedis;
  let connections: RedisConnection[] = [];
  let clock: TestClock;

  before(async function () {
    if (WITHOUT_REDIS) this.skip();
    redis = await TestRedis.start();
  });
  after(() => (WITHOUT_REDIS ? undefined : redis.stop()));
  afterEach(() => {
    for (const connection of connections) connection.close();
    connections = [];
  });

  /** The windows of another instance. */
  async function open(): Promise<RedisRateWindows> {
    clock = new TestClock();
    const connection = connectionTo(redis, clock);
    connections.push(connection);
    await connection.open();
    return new RedisRateWindows(connection, clock);
  }

  /** Advances the local clock, and reduces the TTL of the keys in Redis. */
  async function pass(ms: number): Promise<void> {
    clock.advance(ms);
    for (const key of await redis.client.keys('llmp:rate:*')) {
      const left = await redis.client.pttl(key);
      await redis.client.pexpire(key, left - ms);
    }
  }

  const take = async (windows: RedisRateWindows, key: string, limit: number, windowMs = WINDOW_MS) =>
    windows.take(key, { limit, windowMs });

  behavesAsRateWindows(async () => ({ windows: await open(), windowMs: WINDOW_MS, pass }));

  it('are shared by all instances', async () => {
    const [one, other] = [await open(), await open()];
    const taken = await Promise.all(Array.from({ length: 40 }, (_, i) => take(i % 2 ? one : other, 'together', 10)));
    expect(taken.filter(({ isAllowed }) => isAllowed)).to.have.length(10);
  });

  it('shorter than a second end in time', async () => {
    const windows = await open();
    await take(windows, 'short', 1, 40);
    expect((await take(windows, 'short', 1, 40)).isAllowed).to.equal(false);
    await sleep(45);
    expect((await take(windows, 'short', 1, 40)).isAllowed).to.equal(true);
  });

  it('send Redis no commands for a key over its limit, until the window ends', async () => {
    const windows = await open();
    for (let i = 0; i < 3; i++) await take(windows, 'flood', 2);
    const before = await redis.commands();
    for (let i = 0; i < 1000; i++) expect((await take(windows, 'flood', 2)).isAllowed).to.equal(false);
    expect((await redis.commands()) - before).to.be.below(5);
    await pass(WINDOW_MS + 1);
    expect((await take(windows, 'flood', 2)).isAllowed).to.equal(true);
  });

  for (const [what, spoil] of [
    ['has no expiry', () => redis.client.set('llmp:rate:spoilt', 3)],
    ['is not a number', () => redis.client.set('llmp:rate:spoilt', 'three')],
    ['is of another type', () => redis.client.lpush('llmp:rate:spoilt', 'three')],
    ['expires long after the window', () => redis.client.set('llmp:rate:spoilt', 3, 'PX', WINDOW_MS * 100)],
  ] as const) {
    it(`K08 a key that ${what} gets an expiry, and counting continues`, async () => {
      const windows = await open();
      await redis.client.del('llmp:rate:spoilt');
      await spoil();
      expect((await take(windows, 'spoilt', 5)).isAllowed).to.equal(true);
      expect(await redis.client.pttl('llmp:rate:spoilt'))
        .to.be.above(0)
        .and.at.most(WINDOW_MS);
    });
  }

  it('K08 leave no key without an expiry', async () => {
    const windows = await open();
    await Promise.all(Array.from({ length: 50 }, (_, i) => take(windows, `each ${i}`, 5, 30 + i)));
    for (const key of await redis.client.keys('llmp:rate:*'))
      expect(await redis.client.pttl(key), key).not.to.equal(-1);
  });
});
