import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { StoreUnavailable } from '../../daemon/core/ports.js';
import type { RedisConnection } from '../../daemon/store/redis/connection.js';
import { MOST_ENTRY_BYTES, RedisResponseCache } from '../../daemon/store/redis/response-cache.js';
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

  /** Takes the time off what entries have left, and puts the end of each, and of fills, so much earlier in the sets. */
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
    it('is one: what one keeps another finds', async () => {
      const [one, other] = [await open(), await open()];
      await keep(one.cache);
      expect(bodyOf(await find(other.cache))).to.equal('the models');
      expect(await other.cache.count({ kind: 'all' })).to.equal(1);
    });

    it('G25 removes for all what one removes, and ends the fills of all', async () => {
      const [one, other] = [await open(), await open()];
      await keep(one.cache);
      const fill = await begin(other.cache);
      expect(await one.cache.purge({ kind: 'all' })).to.equal(1);
      expect(await find(other.cache)).to.equal(null);
      expect(await fill.keep([{ place: MODELS, kept: kept() }])).to.equal(false);
    });

    it('hears of a change within 5 ms, though nobody looks', async () => {
      const [one, other] = [await open(), await open()];
      await keep(one.cache);
      const fill = await begin(other.cache);
      one.cache.invalidate(MODELS.projectId, MODELS.resource);
      one.clock.advance(5);
      await one.connection.ping(); // Behind it on the same connection.
      expect(await find(other.cache)).to.equal(null);
      expect(await fill.keep([{ place: MODELS, kept: kept() }])).to.equal(false);
    });

    it('is told of a hundred thousand changes of a resource by few commands', async () => {
      const { cache } = await open();
      const before = await redis.commands();
      for (let i = 0; i < 100_000; i++) cache.invalidate('one', 'GET /v1/chat/completions');
      await cache.size();
      expect((await redis.commands()) - before).to.be.below(20);
    });

    it('is told at shutdown of what it was not told yet', async () => {
      const [one, other] = [await open(), await open()];
      await keep(one.cache);
      one.cache.invalidate(MODELS.projectId, MODELS.resource);
      await one.cache.close();
      one.connection.close();
      expect(await find(other.cache)).to.equal(null);
    });
  });

  describe('G31 in what Redis holds', () => {
    it('there is neither prompt nor answer, no target and no variant', async () => {
      const { cache } = await open();
      const place = { projectId: 'p-1', resource: 'POST /v1/chat?who=resource-word', variant: 'variant-word' };
      await keep(cache, place, kept('answer-word'));
      await begin(cache, place);
      const { client } = redis;
      const all: string[] = [];
      for (const key of await client.keys('*')) {
        all.push(key);
        const type = await client.type(key);
        if (type === 'zset') all.push(...(await client.zrange(key, 0, '-1')));
        else all.push((await client.getBuffer(key))?.toString('latin1') ?? '');
      }
      expect(all.join('\n'))
        .to.include('p-1')
        .and.not.match(/word|text\/plain|\/v1/);
    });

    it('every key of an answer ends by itself, and the index behind them', async () => {
      const { cache } = await open();
      await keep(cache);
      for (const key of [await theEntry(), 'llmp:cache:index', 'llmp:cache:expiry', 'llmp:cache:bytes']) {
        expect(await redis.client.pttl(key), key).to.be.within(1, KEEP_MS + 60_000);
      }
    });
  });

  describe('G27 an entry that is not as it was left is a miss, and is removed', () => {
    const spoil: Record<string, (key: string, payload: Buffer) => unknown> = {
      'cut short': (key, payload) => redis.client.set(key, payload.subarray(0, -1), 'KEEPTTL'),
      'cut to nothing': (key) => redis.client.set(key, '', 'KEEPTTL'),
      'cut to its head': (key, payload) => redis.client.set(key, payload.subarray(0, 13), 'KEEPTTL'),
      lengthened: (key, payload) => redis.client.set(key, Buffer.concat([payload, Buffer.from('!')]), 'KEEPTTL'),
      foreign: (key) => redis.client.set(key, JSON.stringify({ status: 200, body: 'of somebody else' }), 'KEEPTTL'),
      'of an old layout': (key, payload) => redis.client.set(key, payload.fill(0, 12, 13), 'KEEPTTL'),
      'fresh for longer': (key, payload) => redis.client.set(key, payload.fill('0', 0, 12), 'KEEPTTL'),
      'kept for longer': (key) => redis.client.pexpire(key, KEEP_MS * 2),
      'kept for ever': (key) => redis.client.persist(key),
      'of another type': async (key) => {
        await redis.client.del(key);
        await redis.client.hset(key, 'a', 'b');
      },
    };
    for (let at = 0; at < 5; at++) {
      spoil[`with another byte at ${20 * at}`] = (key, payload) => {
        payload[20 * at]! ^= 1;
        return redis.client.set(key, payload, 'KEEPTTL');
      };
    }
    for (const [what, change] of Object.entries(spoil)) {
      it(what, async () => {
        const { cache } = await open();
        await keep(cache);
        const key = await theEntry();
        await change(key, (await redis.client.getBuffer(key))!);
        const { found, fill } = await cache.lookUp(MODELS, { reads: true, fills: true });
        expect(found).to.equal(null);
        expect(await redis.client.exists(key)).to.equal(0);
        expect(await cache.size()).to.deep.equal({ entries: 0, bytes: 0 });
        expect(await fill?.keep([{ place: MODELS, kept: kept('new') }])).to.equal(true);
        expect(bodyOf(await find(cache))).to.equal('new');
      });
    }

    it('copied from another place', async () => {
      const { cache } = await open();
      await keep(cache);
      const mine = await theEntry();
      const other = { ...MODELS, projectId: 'another' };
      await keep(cache, other, kept('not for you'));
      const theirs = (await redis.client.keys(ENTRIES)).find((key) => key !== mine)!;
      await redis.client.copy(theirs, mine, 'REPLACE');
      expect(await find(cache)).to.equal(null);
      expect(await redis.client.exists(mine)).to.equal(0);
      expect(bodyOf(await find(cache, other))).to.equal('not for you');
    });

    it('of an instance with another encryption key', async () => {
      await keep((await open()).cache);
      const other = await open(randomBytes(32));
      expect(await find(other.cache)).to.equal(null);
    });

    it('without its place in the index', async () => {
      const { cache } = await open();
      await keep(cache);
      const key = await theEntry();
      await redis.client.del('llmp:cache:index');
      expect(await find(cache)).to.equal(null);
      expect(await redis.client.exists(key)).to.equal(0);
    });
  });

  describe('a set of ours', () => {
    for (const name of ['index', 'expiry', 'bytes', 'fills', 'fill-expiry', 'run']) {
      it(`that is of another type is removed: ${name}`, async () => {
        const { cache, connection } = await open();
        await keep(cache);
        await redis.client.del(`llmp:cache:${name}`);
        await redis.client.hset(`llmp:cache:${name}`, 'a', 'b');
        await cache.lookUp(MODELS, { reads: true, fills: true });
        await keep(cache).catch(() => false);
        await cache.size().catch(() => undefined);
        expect(await keep(cache)).to.equal(true);
        expect(bodyOf(await find(cache))).to.equal('the models');
        expect((await cache.size()).entries).to.equal(1);
        expect(connection.isUp).to.equal(true);
        await open();
      });

      it(`that is gone means misses at most: ${name}`, async () => {
        const { cache } = await open();
        await keep(cache);
        await redis.client.del(`llmp:cache:${name}`);
        await find(cache);
        await begin(cache).then((fill) => fill.keep([{ place: MODELS, kept: kept('new') }]));
        expect(await cache.purge({ kind: 'all' })).to.be.at.most(1);
        expect(await cache.size()).to.deep.equal({ entries: 0, bytes: 0 });
      });
    }

    it('does not grow: what ended goes as others are kept', async () => {
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

  describe('with more answers than Redis is to be held up for', () => {
    const MANY = 300;
    let cache: RedisResponseCache;

    beforeEach(async () => {
      ({ cache } = await open());
      const places = Array.from({ length: MANY }, (_, i) => ({ ...MODELS, variant: `${i}` }));
      for (let i = 0; i < MANY; i += 50) {
        const entries = places.slice(i, i + 50).map((place) => ({ place, kept: kept('') }));
        expect(await (await begin(cache)).keep(entries)).to.equal(true);
      }
    });

    it('purges them in pieces, and counts each', async () => {
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

  it('G28 keeps and fetches nothing that would take too long to come', async () => {
    const { cache } = await open();
    expect(await keep(cache, MODELS, kept(Buffer.alloc(MOST_ENTRY_BYTES)))).to.equal(false);
    await keep(cache);
    const [member] = await redis.client.zrange('llmp:cache:index', 0, '-1');
    await redis.client.zrem('llmp:cache:index', member!);
    await redis.client.zadd('llmp:cache:index', 0, member!.replace(/\d+$/, String(MOST_ENTRY_BYTES + 1)));
    expect(await find(cache)).to.equal(null);
  });

  describe('while Redis is away', () => {
    it('finds nothing and keeps nothing, and cannot say how much there is', async () => {
      const { cache, connection } = await open();
      await keep(cache);
      const fill = await begin(cache);
      connection.abandon(new Error('for the test'));
      expect(await cache.lookUp(MODELS, { reads: true, fills: true })).to.deep.equal({ found: null, fill: null });
      expect(await fill.keep([{ place: MODELS, kept: kept() }])).to.equal(false);
      for (const question of [
        () => cache.size(),
        () => cache.count({ kind: 'all' }),
        () => cache.purge({ kind: 'resource', resource: MODELS.resource }),
      ]) {
        expect(await question().catch((error: unknown) => error)).to.be.instanceOf(StoreUnavailable);
      }
    });

    it('forgets what is older when it is back, whoever kept it, and works on', async () => {
      const [one, other] = [await open(), await open()];
      await keep(one.cache);
      const fill = await begin(other.cache);
      one.connection.abandon(new Error('for the test'));
      one.cache.invalidate(MODELS.projectId, MODELS.resource);
      one.clock.advance(2_000);
      await eventually('it is back', () => one.connection.isUp);
      for (const { cache } of [one, other]) expect(await find(cache)).to.equal(null);
      expect(await fill.keep([{ place: MODELS, kept: kept('old') }])).to.equal(false);
      expect(await keep(one.cache, MODELS, kept('new'))).to.equal(true);
      expect(bodyOf(await find(other.cache))).to.equal('new');
    });
  });

  describe('at a start', () => {
    it('keeps what is there', async () => {
      await keep((await open()).cache);
      expect(bodyOf(await find((await open()).cache))).to.equal('the models');
    });

    it('forgets it when Redis is another process than the one it was made in', async () => {
      await keep((await open()).cache);
      await redis.client.set('llmp:cache:run', 'another');
      expect(await find((await open()).cache)).to.equal(null);
    });

    it('forgets it when something changed while there was no connection yet', async () => {
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

  it('goes by the time of Redis: our clock may jump', async () => {
    const { cache, clock } = await open();
    await keep(cache);
    clock.advance(FRESH_MS * 100);
    expect((await find(cache))?.heldMs).to.be.below(FRESH_MS);
  });
});
