/** The cache in Redis when other programs write to it, and when Redis is slow. */
import { expect } from 'chai';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { type Provider, startProvider } from '../support/provider.js';
import { ask, type Fields, head, type RawResponse } from '../support/raw.js';
import { perTest } from '../support/per-test.js';
import { LENIENT_REDIS_TIMEOUT_MS, redisPerTest, Relay, WITHOUT_REDIS } from '../support/redis.js';

const ENTRIES = 'llmp:cache:entry:*';
const PROMPT = 'a-prompt-nobody-else-may-read';
const ANSWER = 'an-answer-nobody-else-may-read';

describe(`G: the cache in Redis${WITHOUT_REDIS}`, function () {
  this.timeout(30_000);
  let provider: Provider;
  let daemon: TestDaemon;
  let secret: string;
  let answered: number;
  let redisCommandMs: number | undefined = LENIENT_REDIS_TIMEOUT_MS;

  const redis = redisPerTest(async () => {
    await daemon.stop();
    await provider.stop();
  });
  const relay = perTest(() => Relay.to(redis.port));
  beforeEach(async () => {
    provider = await startProvider();
    answered = 0;
    provider.answer = (_req, res) => {
      // With a tag the entry is kept for longer than it is fresh.
      res.writeHead(200, { 'Cache-Control': 'max-age=600', ETag: '"a"' }).end(`${ANSWER} ${++answered}`);
    };
    daemon = await startDaemon({
      upstream: provider.url,
      env: { REDIS_ADDR: relay.address, HTTP_CACHE_ENABLED: 'true', HTTP_CACHE_BACKEND: 'redis' },
      redisCommandMs,
    });
    const project = await daemon.createProject();
    secret = (await daemon.createToken(project.id)).token;
  });

  const get = (target = '/v1/r', fields: Fields = {}) => ask(daemon.url, head(`GET ${target}`, secret, fields));
  const post = (body: string) =>
    ask(
      daemon.url,
      head('POST /v1/p', secret, { 'Content-Length': String(body.length), 'Cache-Control': 'public' }) + body,
    );
  const cacheOf = (answer: RawResponse) => answer.header('x-proxy-cache');
  const entries = () => redis.client.keys(ENTRIES);

  const changed = (change: (bytes: Buffer) => string | Buffer) => (key: string, bytes: Buffer) =>
    redis.client.set(key, change(bytes), 'KEEPTTL');
  const CHANGES: Record<string, (key: string, bytes: Buffer) => unknown> = {
    'no bytes': changed(() => ''),
    'a text': changed(() => 'hello'),
    'foreign JSON': changed(() => '{"status":200,"body":"poison"}'),
    'half of the entry': changed((bytes) => bytes.subarray(0, bytes.length >> 1)),
    'the entry without its last byte': changed((bytes) => bytes.subarray(0, -1)),
    'the head of the entry': changed((bytes) => bytes.subarray(0, 13)),
    'the entry in another layout': changed((bytes) => bytes.fill(99, 12, 13)),
    'the entry, fresh for longer': changed((bytes) => bytes.fill('0', 0, 12)),
    'the entry with more bytes after it': changed((bytes) => Buffer.concat([bytes, Buffer.from('x')])),
    '20 MB': changed(() => Buffer.alloc(20 * 1024 * 1024, 'x')),
    'the entry with a longer TTL': (key) => redis.client.pexpire(key, 24 * 3_600_000),
    'the entry without a TTL': (key) => redis.client.persist(key),
    'a value of another type': async (key) => {
      await redis.client.del(key);
      await redis.client.hset(key, 'a', 'b');
    },
  };
  for (let at = 0; at < 6; at++) {
    CHANGES[`the entry with a changed bit at ${20 * at}`] = changed((bytes) => {
      bytes[20 * at]! ^= 1;
      return bytes;
    });
  }

  it('G27 whatever takes the place of an entry is a miss, and is replaced', async () => {
    for (const [what, change] of Object.entries(CHANGES)) {
      await daemon.manage('POST', '/manage/cache/purge', { all: true });
      await get();
      const [key = ''] = await entries();
      await change(key, (await redis.client.getBuffer(key))!);
      const after = await get();
      expect([cacheOf(after), after.text], what).to.deep.equal(['miss', `${ANSWER} ${answered}`]);
      const again = await get();
      expect([cacheOf(again), again.text], what).to.deep.equal(['hit', after.text]);
    }
  });

  it('G27 an entry that is copied to another key is a miss there', async () => {
    await get('/v1/one');
    const [one = ''] = await entries();
    await get('/v1/two');
    const two = (await entries()).find((key) => key !== one) ?? '';
    await redis.client.copy(one, two, 'REPLACE');
    const after = await get('/v1/two');
    expect([cacheOf(after), after.text]).to.deep.equal(['miss', `${ANSWER} 3`]);
  });

  it("G27 values of other types at the cache's keys are misses, and are soon forgotten", async () => {
    await get();
    for (const key of await redis.client.keys('llmp:cache:*')) {
      await redis.client.del(key);
      await redis.client.lpush(key, 'x');
    }
    expect((await get()).status).to.equal(200);
    await eventually('it works again', async () => cacheOf(await get()) === 'hit');
  });

  describe('with the default time limit', () => {
    before(() => {
      redisCommandMs = undefined;
    });
    after(() => {
      redisCommandMs = LENIENT_REDIS_TIMEOUT_MS;
    });

    it('G28 a Redis that takes 500 ms per reply does not delay requests by as much', async () => {
      await get();
      relay.delayMs = 250; // In each direction.
      const beganAtMs = performance.now();
      const answer = await get();
      const tookMs = performance.now() - beganAtMs;
      expect([answer.status, cacheOf(answer)]).to.deep.equal([200, 'miss']);
      expect(tookMs, 'ms').to.be.below(400);
    });

    it('G28 a frozen Redis costs no request, and entries from before are not served afterwards', async () => {
      await get();
      redis.freeze();
      for (let i = 0; i < 5; i++) expect((await get()).status).to.equal(200);
      // Before that it is only suspected, and nothing is lost.
      await eventually('it is given up', () => daemon.logged.some((line) => line.includes('Redis unavailable')));
      redis.resume();
      expect(answered).to.equal(6);
      await eventually('it is used again', async () => {
        daemon.clock.advance(1_000);
        return cacheOf(await get()) === 'hit';
      });
      expect((await get()).text).not.to.equal(`${ANSWER} 1`);
    });
  });

  it('G31 prompts, responses and targets are encrypted, and no key or index reveals them', async () => {
    await get('/v1/r?who=a-target-nobody-else-may-read', { Accept: 'a-field-nobody-else-may-read' });
    await post(PROMPT);
    expect(cacheOf(await post(PROMPT))).to.equal('hit');
    const { client } = redis;
    let all = '';
    for (const key of await client.keys('*')) {
      const dump = await client.dumpBuffer(key);
      const members = (await client.type(key)) === 'zset' ? await client.zrange(key, 0, '-1') : [];
      all += `${key}\n${members.join('\n')}\n${dump.toString('latin1')}\n`;
    }
    expect(all).to.include('llmp:cache:entry:');
    expect(all).not.to.include('nobody-else-may-read');
    expect(all).not.to.include(secret);
  });
});
