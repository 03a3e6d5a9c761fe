import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { StoreUnavailable } from '../../daemon/core/ports.js';
import type { RedisConnection } from '../../daemon/store/redis/connection.js';
import { MAX_ENTRY_BYTES, RedisResponseCache } from '../../daemon/store/redis/response-cache.js';
import { TestClock } from '../support/clock.js';
import { eventually } from '../support/eventually.js';
import { connectionTo, TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { begin, behavesAsCacheStore, bodyOf, find, FRESH_MS, keep, KEEP_MS, kept, MODELS } from './response-cache.js';

const KEY = randomBytes(32);
const ENTRIES = 'llmp:cache:entry:*';

interface Instance {
  cache: RedisResponseCache;
  connection: RedisConnection;
  clock: TestClock;
}

describe(`the cache in Redis${WITHOUT_REDIS}`, function () {
  let redis: TestRedis;
  let instances: Instance[] = [];

  before(async function () {
    if (WITHOUT_REDIS) this.skip();
    redis = await TestRedis.start();
  });
  after(() => (WITHOUT_REDIS ? undefined : redis.stop()));
  beforeEach(() => redis.client.flushall());
  afterEach(() => {
    for (const { connection } of instances) connection.close();
    instances = [];
  });

  async function open(key = KEY): Promise<Instance> {
    const clock = new TestClock();
    const connection = connectionTo(redis, clock);
    const cache = new RedisResponseCache({ connection, clock, key });
    const instance = { cache, connection, clock };
    instances.push(instance);
    await connection.open();
    return instance;
  }

  /** Reduces the TTL of entries, and moves the expiry of entries and write leases in the sets by the same time. */
  async function pass(ms: number): Promise<void> {
    const { client } = redis;
    for (const key of await client.keys(ENTRIES)) await client.pexpire(key, (await client.pttl(key)) - ms);
    for (const set of ['llmp:cache:expiry', 'llmp:cache:fill-expiry']) {
      for (const member of await client.zrange(set, 0, '-1')) await client.zincrby(set, -ms, member);
    }
  }

  const theEntry = async (): Promise<string> => {
    const [key, ...others] = await redis.client.keys(ENTRIES);
    expect(others).to.deep.equal([]);
    return key!;
  };

  behavesAsCacheStore(async () => ({ ...(await open()), pass }));

  describe('for several instances', () => {
    it('is shared: an entry stored by one is found by another', async () => {
      const [one, other] = [await open(), await open()];
      await keep(one.cache);
      expect(bodyOf(await find(other.cache))).to.equal('the models');
      expect(await other.cache.count({ kind: 'all' })).to.equal(1);
    });

    it('G25 removes entries for all instances, and ends the write leases of all', async () => {
      const [one, other] = [await open(), await open()];
      await keep(one.cache);
      const writeLease = await begin(other.cache);
      expect(await one.cache.purge({ kind: 'all' })).to.equal(1);
      expect(await find(other.cache)).to.equal(null);
      expect(await writeLease.store([{ key: MODELS, entry: kept() }])).to.equal(false);
    });

    it('is invalidated within 5 ms, even without a look-up', async () => {
      const [one, other] = [await open(), await open()];
      await keep(one.cache);
      const writeLease = await begin(other.cache);
      one.cache.invalidate(MODELS.projectId, MODELS.resource);
      one.clock.advance(5);
      await one.connection.ping(); // Executed after it, on the same connection.
      expect(await find(other.cache)).to.equal(null);
      expect(await writeLease.store([{ key: MODELS, entry: kept() }])).to.equal(false);
    });

    it('receives a hundred thousand changes of one resource in few commands', async () => {
      const { cache } = await open();
      const before = await redis.commands();
      for (let i = 0; i < 100_000; i++) cache.invalidate('one', 'GET /v1/chat/completions');
      await cache.size();
      expect((await redis.commands()) - before).to.be.below(20);
    });

    it('receives pending invalidations at shutdown', async () => {
      const [one, other] = [await open(), await open()];
      await keep(one.cache);
      one.cache.invalidate(MODELS.projectId, MODELS.resource);
      await one.cache.close();
      one.connection.close();
      expect(await find(other.cache)).to.equal(null);
    });
  });

  describe('G31 in the data of Redis', () => {
    it('every key of an entry expires on its own, and the index after them', async () => {
      const { cache } = await open();
      await keep(cache);
      for (const key of [await theEntry(), 'llmp:cache:index', 'llmp:cache:expiry', 'llmp:cache:bytes']) {
        expect(await redis.client.pttl(key), key).to.be.within(1, KEEP_MS + 60_000);
      }
    });
  });

  describe('G27 an entry is a miss', () => {
    it('of an instance with another encryption key', async () => {
      await keep((await open()).cache);
      const other = await open(randomBytes(32));
      expect(await find(other.cache)).to.equal(null);
    });

    it('without a member in the index', async () => {
      const { cache } = await open();
      await keep(cache);
      const key = await theEntry();
      await redis.client.del('llmp:cache:index');
      expect(await find(cache)).to.equal(null);
      expect(await redis.client.exists(key)).to.equal(0);
    });
  });

  describe('a sorted set of the cache', () => {
    for (const name of ['index', 'expiry', 'bytes', 'fills', 'fill-expiry', 'run']) {
      it(`with another type is removed: ${name}`, async () => {
        const { cache, connection } = await open();
        await keep(cache);
        await redis.client.del(`llmp:cache:${name}`);
        await redis.client.hset(`llmp:cache:${name}`, 'a', 'b');
        await cache.lookUp(MODELS, { mayRead: true, mayStore: true });
        await keep(cache).catch(() => false);
        await cache.size().catch(() => undefined);
        expect(await keep(cache)).to.equal(true);
        expect(bodyOf(await find(cache))).to.equal('the models');
        expect((await cache.size()).entries).to.equal(1);
        expect(connection.isReady).to.equal(true);
        await open();
      });

      it(`that is missing only causes misses: ${name}`, async () => {
        const { cache } = await open();
        await keep(cache);
        await redis.client.del(`llmp:cache:${name}`);
        await find(cache);
        await begin(cache).then((writeLease) => writeLease.store([{ key: MODELS, entry: kept('new') }]));
        expect(await cache.purge({ kind: 'all' })).to.be.at.most(1);
        expect(await cache.size()).to.deep.equal({ entries: 0, bytes: 0 });
      });
    }

    it('does not grow: expired entries are removed as others are stored', async () => {
      const { cache } = await open();
      const short = kept('short', { freshMs: 1_000, keepMs: 1_000 });
      for (let i = 0; i < 10; i++) await keep(cache, { ...MODELS, variant: `${i}` }, short);
      for (let i = 0; i < 10; i++) await begin(cache);
      await pass(2 * 3_600_000);
      await keep(cache);
      const { client } = redis;
      expect(await client.zcard('llmp:cache:index')).to.equal(1);
      expect(await client.zcard('llmp:cache:expiry')).to.equal(1);
      expect(await client.zcard('llmp:cache:fills')).to.equal(0);
      expect(await client.zcard('llmp:cache:fill-expiry')).to.equal(0);
    });
  });

  describe('with more responses than Redis should process at once', () => {
    const MANY = 300;
    let cache: RedisResponseCache;

    beforeEach(async () => {
      ({ cache } = await open());
      const places = Array.from({ length: MANY }, (_, i) => ({ ...MODELS, variant: `${i}` }));
      for (let i = 0; i < MANY; i += 50) {
        const entries = places.slice(i, i + 50).map((key) => ({ key, entry: kept('') }));
        expect(await (await begin(cache)).store(entries)).to.equal(true);
      }
    });

    it('purges them in batches, and counts each response', async () => {
      const project = { kind: 'project', projectId: 'one' } as const;
      expect(await cache.count(project)).to.equal(MANY);
      expect(await cache.purge(project)).to.equal(MANY);
      expect(await redis.client.keys(ENTRIES)).to.deep.equal([]);
      expect(await cache.size()).to.deep.equal({ entries: 0, bytes: 0 });
    });

    it('removes those of one resource at once', async () => {
      cache.invalidate(MODELS.projectId, MODELS.resource);
      expect(await find(cache, { ...MODELS, variant: `${MANY - 1}` })).to.equal(null);
      expect(await cache.size()).to.deep.equal({ entries: 0, bytes: 0 });
    });
  });

  it('G28 neither stores nor loads an entry that takes too long to transfer', async () => {
    const { cache } = await open();
    expect(await keep(cache, MODELS, kept(Buffer.alloc(MAX_ENTRY_BYTES)))).to.equal(false);
    await keep(cache);
    const [member] = await redis.client.zrange('llmp:cache:index', 0, '-1');
    await redis.client.zrem('llmp:cache:index', member!);
    await redis.client.zadd('llmp:cache:index', 0, member!.replace(/\d+$/, String(MAX_ENTRY_BYTES + 1)));
    expect(await find(cache)).to.equal(null);
  });

  describe('while Redis is unavailable', () => {
    it('finds nothing, stores nothing, and cannot report its size', async () => {
      const { cache, connection } = await open();
      await keep(cache);
      const writeLease = await begin(cache);
      connection.abandon(new Error('for the test'));
      expect(await cache.lookUp(MODELS, { mayRead: true, mayStore: true })).to.deep.equal({
        found: null,
        writeLease: null,
      });
      expect(await writeLease.store([{ key: MODELS, entry: kept() }])).to.equal(false);
      for (const question of [
        () => cache.size(),
        () => cache.count({ kind: 'all' }),
        () => cache.purge({ kind: 'resource', resource: MODELS.resource }),
      ]) {
        expect(await question().catch((error: unknown) => error)).to.be.instanceOf(StoreUnavailable);
      }
    });

    it('drops older entries when Redis is available again, whichever instance stored them, and continues to work', async () => {
      const [one, other] = [await open(), await open()];
      await keep(one.cache);
      const writeLease = await begin(other.cache);
      one.connection.abandon(new Error('for the test'));
      one.cache.invalidate(MODELS.projectId, MODELS.resource);
      one.clock.advance(2_000);
      await eventually('Redis is connected again', () => one.connection.isReady);
      for (const { cache } of [one, other]) expect(await find(cache)).to.equal(null);
      expect(await writeLease.store([{ key: MODELS, entry: kept('old') }])).to.equal(false);
      expect(await keep(one.cache, MODELS, kept('new'))).to.equal(true);
      expect(bodyOf(await find(other.cache))).to.equal('new');
    });
  });

  describe('at startup', () => {
    it('keeps the entries', async () => {
      await keep((await open()).cache);
      expect(bodyOf(await find((await open()).cache))).to.equal('the models');
    });

    it('drops the entries when Redis is not the process in which they were stored', async () => {
      await keep((await open()).cache);
      await redis.client.set('llmp:cache:run', 'another');
      expect(await find((await open()).cache)).to.equal(null);
    });

    it('drops the entries when something changed before the first connection', async () => {
      await keep((await open()).cache);
      const clock = new TestClock();
      const connection = connectionTo(redis, clock);
      const cache = new RedisResponseCache({ connection, clock, key: KEY });
      instances.push({ cache, connection, clock });
      cache.invalidate(MODELS.projectId, MODELS.resource);
      await connection.open();
      expect(await find(cache)).to.equal(null);
    });
  });

  it('uses the clock of Redis: our clock may jump', async () => {
    const { cache, clock } = await open();
    await keep(cache);
    clock.advance(FRESH_MS * 100);
    expect((await find(cache))?.residentMs).to.be.below(FRESH_MS);
  });
});
