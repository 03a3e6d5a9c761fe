import { VARY_BY_CARRIER } from '../../daemon/http/fields.js';
import { expect } from 'chai';
import type { ServerResponse } from 'node:http';
import { eventually } from '../support/eventually.js';
import { type Answer } from '../support/provider.js';
import { type Fields, head, type RawResponse } from '../support/raw.js';
import { expectRefusal } from '../support/refusals.js';
import { ProxyFixture } from '../support/proxy-fixture.js';

const NOT_CACHED = { status: 504, code: 'not_cached', error: 'not in cache' };

describe('the response cache', () => {
  let scene: ProxyFixture;

  before(async () => {
    scene = await ProxyFixture.open({ HTTP_CACHE_ENABLED: 'true' });
  });
  beforeEach(async () => {
    await scene.begin();
    await scene.daemon.manage('POST', '/manage/cache/purge', { all: true });
  });
  afterEach(() => scene.end());
  after(() => scene.close());

  const get = (target: string, fields: Fields = {}, secret = scene.secret) =>
    scene.send(head(`GET ${target}`, secret, fields));
  const cacheOf = (answer: RawResponse) => answer.header('x-proxy-cache');
  /** Responds with these headers, and a body that identifies the response. */
  const answering =
    (headers: Record<string, string>, status = 200): Answer =>
    (_req, res) => {
      res.writeHead(status, headers).end(`answer ${scene.provider.received.length}`);
    };
  const hits = async () => (await scene.daemon.token(scene.token.id)).cache_hit_count;

  it('answers the second of two identical requests without the upstream', async () => {
    const first = await get('/v1/models');
    const second = await get('/v1/models');
    expect([cacheOf(first), cacheOf(second)]).to.deep.equal(['miss', 'hit']);
    expect(second.body.equals(first.body)).to.equal(true);
    expect(second.status).to.equal(200);
    await scene.expectSpent(1);
    expect(await hits()).to.equal(1);
  });

  it('sends the age and lifetime of a hit, and nothing from the request that it was stored for', async () => {
    scene.provider.answer = answering({
      'Cache-Control': 'max-age=100',
      'X-Request-ID': 'upstreams-own',
      'Server-Timing': 'db;dur=1',
      'X-Kept': 'yes',
      Vary: 'Accept',
    });
    await get('/v1/a');
    scene.daemon.clock.advance(10_500);
    const hit = await get('/v1/a', { 'X-Request-ID': 'mine' });
    expect(cacheOf(hit)).to.equal('hit');
    expect(hit.header('age')).to.equal('10');
    expect(hit.header('cache-status')).to.equal('llmp; hit; ttl=89');
    expect(hit.header('x-request-id')).to.equal('mine');
    expect(hit.header('x-kept')).to.equal('yes');
    expect(hit.header('vary')).to.equal(`Accept, ${VARY_BY_CARRIER}`);
    expect(hit.header('x-token-expires-at')).to.equal(scene.token.expires_at);
    for (const name of ['x-upstream-request-id', 'server-timing']) expect(hit.header(name), name).to.equal(undefined);
    expect(Math.abs(Date.parse(hit.header('date') ?? '') - Date.now())).to.be.below(5_000);
  });

  it('asks the upstream again when the response has expired', async () => {
    scene.provider.answer = answering({ 'Cache-Control': 'max-age=60' });
    await get('/v1/a');
    scene.daemon.clock.advance(59_000);
    expect(cacheOf(await get('/v1/a'))).to.equal('hit');
    scene.daemon.clock.advance(1_500);
    expect(cacheOf(await get('/v1/a'))).to.equal('miss');
  });

  it('counts the lifetime of a response from its request on, however long the response took', async () => {
    let upstream: ServerResponse | undefined;
    scene.provider.answer = (_req, res) => {
      upstream = res.writeHead(200, { 'Cache-Control': 'max-age=60' });
      res.write('slow');
    };
    const client = await scene.client(head('GET /v1/slow', scene.secret));
    await client.seen('slow');
    scene.daemon.clock.advance(20_000);
    upstream?.end();
    await client.response();
    const hit = await get('/v1/slow');
    expect([cacheOf(hit), hit.header('age'), hit.header('cache-status')]).to.deep.equal([
      'hit',
      '20',
      'llmp; hit; ttl=39',
    ]);
    scene.daemon.clock.advance(40_000);
    expectRefusal(await get('/v1/slow', { 'Cache-Control': 'only-if-cached' }), NOT_CACHED);
  });

  it('gives responses without a lifetime the default on configured paths, and elsewhere only if the client opts in', async () => {
    scene.provider.answer = answering({});
    for (const target of ['/v1/models', '/v1/models/gpt-test', '/v1/models?limit=2']) {
      await get(target);
      expect(cacheOf(await get(target)), target).to.equal('hit');
    }
    for (const target of ['/v1/batches/b', '/v1/models-of-mine']) {
      await get(target);
      expect(cacheOf(await get(target)), target).to.equal('miss');
      await get(target, { 'Cache-Control': 'public' });
      expect(cacheOf(await get(target, { 'Cache-Control': 'public' })), `${target}, opted in`).to.equal('hit');
    }
  });

  it('does not serve a response to other clients that one client opted in to', async () => {
    scene.provider.answer = answering({ ETag: '"v"' });
    await get('/v1/batches/b', { 'Cache-Control': 'public' });
    const polled = [await get('/v1/batches/b'), await get('/v1/batches/b')];
    expect(polled.map((answer) => [cacheOf(answer), answer.text])).to.deep.equal([
      ['miss', 'answer 2'],
      ['miss', 'answer 3'],
    ]);
    expectRefusal(await get('/v1/batches/b', { 'Cache-Control': 'only-if-cached' }), NOT_CACHED);
    expect((await get('/v1/batches/b', { 'Cache-Control': 'public' })).text).to.equal('answer 1');
  });

  it('gives a response its full default lifetime even if it took longer than that to generate', async () => {
    scene.provider.answer = (_req, res) => {
      scene.daemon.clock.advance(400_000);
      res.end('slowly made');
    };
    const ask = () => scene.send(scene.post({ 'Cache-Control': 'public' }, '{}'));
    await ask();
    const hit = await ask();
    expect([cacheOf(hit), hit.header('age')]).to.deep.equal(['hit', '400']);
  });

  it('stores a POST only if its client opts in, separately for each body', async () => {
    scene.provider.answer = answering({});
    const post = (body: string, fields: Fields = {}) => scene.send(scene.post(fields, body));
    const OPTED_IN = { 'Cache-Control': 'public' };
    await post('{"a":1}');
    expect(cacheOf(await post('{"a":1}'))).to.equal('miss');
    await post('{"a":1}', OPTED_IN);
    expect(cacheOf(await post('{"a":1}', OPTED_IN))).to.equal('hit');
    expect(cacheOf(await post('{"a":2}', OPTED_IN))).to.equal('miss');
    expect(cacheOf(await post('{"a":1}'))).to.equal('miss');
  });

  it('also stores a chunked POST, but none larger than 1 MiB', async () => {
    scene.provider.answer = (_req, res, { body }) => {
      res.end(String(body.length));
    };
    const inChunks = (body: string) =>
      head('POST /v1/x', scene.secret, { 'Cache-Control': 'public', 'Transfer-Encoding': 'chunked' }) +
      `${(body.length - 3).toString(16)}\r\n${body.slice(3)}\r\n3\r\n${body.slice(0, 3)}\r\n0\r\n\r\n`;
    for (const [size, expected] of [
      [100, 'hit'],
      [1024 * 1024, 'hit'],
      [1024 * 1024 + 1, 'miss'],
    ] as const) {
      const body = 'x'.repeat(size);
      expect((await scene.send(inChunks(body))).text).to.equal(String(size));
      const again = await scene.send(inChunks(body));
      expect([again.text, cacheOf(again)]).to.deep.equal([String(size), expected]);
    }
  });

  it('answers HEAD from the stored response to GET, and stores no response to HEAD', async () => {
    scene.provider.answer = answering({ 'Cache-Control': 'max-age=60', 'Content-Type': 'text/plain' });
    const askHead = () => scene.send(head('HEAD /v1/h', scene.secret), 'HEAD');
    expect(cacheOf(await askHead())).to.equal('miss');
    expect(cacheOf(await get('/v1/h'))).to.equal('miss');
    const hit = await askHead();
    expect([cacheOf(hit), hit.header('content-length'), hit.header('content-type')]).to.deep.equal([
      'hit',
      '8',
      'text/plain',
    ]);
  });

  it('answers 304 if the client already has the fresh response', async () => {
    scene.provider.answer = answering({ 'Cache-Control': 'max-age=60', ETag: '"v1"', 'Content-Type': 'text/plain' });
    await get('/v1/e');
    for (const condition of ['"v1"', 'W/"v1"', '"v0", "v1"', '*']) {
      const answer = await get('/v1/e', { 'If-None-Match': condition });
      expect([answer.status, cacheOf(answer), answer.header('etag')], condition).to.deep.equal([304, 'hit', '"v1"']);
      expect(answer.header('content-type')).to.equal(undefined);
    }
    const other = await get('/v1/e', { 'If-None-Match': '"v0"' });
    expect([other.status, cacheOf(other)]).to.deep.equal([200, 'hit']);
    expect(await hits()).to.equal(5);
    await scene.expectSpent(1);
  });

  it('revalidates a stale response, and uses it if it is confirmed', async () => {
    scene.provider.answer = (req, res) => {
      if (req.headers['if-none-match'] === '"v1"') {
        res.writeHead(304, { ETag: '"v1"', 'Cache-Control': 'max-age=30', 'X-New': 'yes' }).end();
      } else {
        res.writeHead(200, { ETag: '"v1"', 'Cache-Control': 'max-age=60', 'X-Old': 'yes' }).end('the answer');
      }
    };
    await get('/v1/s');
    scene.daemon.clock.advance(61_000);
    const confirmed = await get('/v1/s');
    expect([confirmed.status, confirmed.text, cacheOf(confirmed)]).to.deep.equal([200, 'the answer', 'miss']);
    expect([confirmed.header('x-old'), confirmed.header('x-new')]).to.deep.equal(['yes', 'yes']);
    await scene.expectSpent(2);
    scene.daemon.clock.advance(29_000);
    const hit = await get('/v1/s');
    expect([cacheOf(hit), hit.text, hit.header('cache-control')]).to.deep.equal(['hit', 'the answer', 'max-age=30']);
    scene.daemon.clock.advance(2_000);
    expect(cacheOf(await get('/v1/s'))).to.equal('miss');
  });

  it('replaces a stale response with a new one', async () => {
    scene.provider.answer = answering({ ETag: '"changes"', 'Cache-Control': 'max-age=60' });
    await get('/v1/s');
    scene.daemon.clock.advance(61_000);
    expect((await get('/v1/s')).text).to.equal('answer 2');
    expect((await get('/v1/s')).text).to.equal('answer 2');
  });

  it('follows the request directives no-store, no-cache, max-age, min-fresh and only-if-cached', async () => {
    scene.provider.answer = answering({ 'Cache-Control': 'max-age=60' });
    const wish = (text: string) => get('/v1/w', { 'Cache-Control': text });
    expectRefusal(await wish('only-if-cached'), NOT_CACHED);
    expect(await scene.uses()).to.equal(0);
    await wish('no-store');
    expectRefusal(await wish('only-if-cached'), NOT_CACHED);
    expect((await get('/v1/w')).text).to.equal('answer 2');
    expect([(await wish('no-store')).text, (await get('/v1/w')).text]).to.deep.equal(['answer 3', 'answer 2']);
    expect([(await wish('no-cache')).text, (await get('/v1/w')).text]).to.deep.equal(['answer 4', 'answer 4']);
    expect([(await wish('max-age=0')).text, (await get('/v1/w')).text]).to.deep.equal(['answer 5', 'answer 5']);
    expect((await get('/v1/w', { Pragma: 'no-cache' })).text).to.equal('answer 6');
    scene.daemon.clock.advance(20_000);
    expect((await wish('max-age=30')).text).to.equal('answer 6');
    expect((await wish('min-fresh=30')).text).to.equal('answer 6');
    expect((await wish('max-age=10')).text).to.equal('answer 7');
    expect((await wish('min-fresh=61')).text).to.equal('answer 8');
    expect(cacheOf(await wish('only-if-cached'))).to.equal('hit');
  });

  for (const method of ['PUT', 'POST', 'PATCH', 'DELETE']) {
    it(`removes the stored response to GET when ${method} has changed the resource`, async () => {
      scene.provider.answer = answering({ 'Cache-Control': 'max-age=60' });
      await get('/v1/files/f');
      await get('/v1/files/f', { Accept: 'text/plain' });
      await get('/v1/files/g');
      await scene.send(head(`${method} /v1/files/f`, scene.secret, { 'Content-Length': '0' }));
      expect(cacheOf(await get('/v1/files/f'))).to.equal('miss');
      expect(cacheOf(await get('/v1/files/f', { Accept: 'text/plain' }))).to.equal('miss');
      expect(cacheOf(await get('/v1/files/g'))).to.equal('hit');
    });
  }

  it('removes nothing when the change was refused', async () => {
    scene.provider.answer = (req, res) => {
      res.writeHead(req.method === 'GET' ? 200 : 409, { 'Cache-Control': 'max-age=60' }).end('x');
    };
    await get('/v1/files/f');
    await scene.send(head('DELETE /v1/files/f', scene.secret));
    expect(cacheOf(await get('/v1/files/f'))).to.equal('hit');
  });

  describe('coalesces identical requests:', () => {
    /** Responses held back until `letGo`. */
    const held: ServerResponse[] = [];
    beforeEach(() => {
      held.length = 0;
      scene.daemon.clock.advance(10_000); // Ends the suspension of coalescing by the previous test.
      scene.provider.answer = (_req, res) => {
        held.push(res);
      };
    });
    const letGo = (headers: Record<string, string> = { 'Cache-Control': 'max-age=60' }) => {
      for (const res of held.splice(0)) res.writeHead(200, headers).end(`answer ${scene.provider.received.length}`);
    };

    it('only one is sent to the upstream', async () => {
      const asked = Array.from({ length: 200 }, () => get('/v1/one'));
      await scene.inFlight(200);
      await scene.reached(1);
      letGo();
      const answers = await Promise.all(asked);
      expect(new Set(answers.map(({ text }) => text))).to.deep.equal(new Set(['answer 1']));
      expect(answers.filter((answer) => cacheOf(answer) === 'hit')).to.have.lengthOf(199);
      await scene.expectSpent(1);
      expect(await hits()).to.equal(199);
    });

    it('one that requires a younger response than the others get asks the upstream itself', async () => {
      const leader = get('/v1/one');
      await scene.reached(1);
      const followers = [get('/v1/one', { 'Cache-Control': 'max-age=3' }), get('/v1/one')];
      await scene.inFlight(3);
      letGo({ 'Cache-Control': 'max-age=60', Age: '4' });
      await scene.reached(2);
      letGo();
      const answers = await Promise.all([leader, ...followers]);
      expect(answers.map(({ text }) => text)).to.deep.equal(['answer 1', 'answer 2', 'answer 1']);
    });

    it('all ask the upstream themselves as soon as the response turns out not to be storable', async () => {
      const asked = Array.from({ length: 5 }, () => get('/v1/not'));
      await scene.inFlight(5);
      await scene.reached(1);
      held.splice(0).map((res) => res.writeHead(200, { 'Cache-Control': 'no-store' }).write('begun')); // Does not end yet.
      await scene.reached(5);
      letGo();
      scene.provider.server.closeAllConnections();
      const answers = await Promise.allSettled(asked);
      expect(answers.filter(({ status }) => status === 'fulfilled')).to.have.lengthOf(4);
    });

    it('they are not coalesced again for ten seconds after that', async () => {
      scene.provider.answer = answering({ 'Cache-Control': 'no-store' });
      await Promise.all([get('/v1/not'), get('/v1/not')]);
      scene.provider.answer = (_req, res) => {
        held.push(res);
      };
      scene.provider.received.length = 0;
      const asked = [get('/v1/not'), get('/v1/not')];
      await scene.reached(2);
      letGo({ 'Cache-Control': 'no-store' });
      await Promise.all(asked);
      scene.daemon.clock.advance(10_000);
      const joined = [get('/v1/not'), get('/v1/not')];
      await scene.inFlight(2);
      await scene.reached(3);
      letGo();
      await Promise.all(joined);
      await scene.reached(3);
    });

    it('none fails when the token of the leader is revoked: the next one takes over', async () => {
      const other = await scene.daemon.createToken(scene.project.id);
      const leader = get('/v1/one');
      await scene.reached(1);
      const followers = [get('/v1/one', {}, other.token), get('/v1/one', {}, other.token)];
      await scene.inFlight(3);
      await scene.daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`);
      expect((await leader).status).to.equal(401);
      await scene.reached(2);
      letGo();
      const answers = await Promise.all(followers);
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 200]);
      expect(answers.map(cacheOf).sort()).to.deep.equal(['hit', 'miss']);
    });

    it('none fails when the client of the leader disconnects: its response is still read', async () => {
      const leader = await scene.client(head('GET /v1/one', scene.secret));
      await scene.reached(1);
      const followers = [get('/v1/one'), get('/v1/one')];
      await scene.inFlight(3);
      leader.destroy();
      await eventually('it is recorded', () => scene.daemon.ended.length === 1);
      letGo();
      expect((await Promise.all(followers)).map(cacheOf)).to.deep.equal(['hit', 'hit']);
      await scene.expectSpent(1);
      expect(scene.daemon.ended[0]?.outcome).to.equal('client_closed');
    });

    it('none fails when the upstream fails: each asks again itself', async () => {
      const leader = get('/v1/one').catch((error: unknown) => error);
      await scene.reached(1);
      const followers = [get('/v1/one'), get('/v1/one')];
      await scene.inFlight(3);
      const [broken] = held.splice(0);
      broken?.writeHead(200, { 'Cache-Control': 'max-age=60', 'Content-Length': '100' });
      await new Promise<void>((resolve) => {
        broken?.write('x', () => {
          resolve();
        });
      });
      broken?.destroy();
      expect(await leader).to.be.an('error');
      await scene.reached(3);
      letGo();
      expect((await Promise.all(followers)).map(({ status }) => status)).to.deep.equal([200, 200]);
    });

    it('a thousand that wait are refused one by one when the cap of their token is used up meanwhile (no deep recursion)', async () => {
      const capped = await scene.daemon.createToken(scene.project.id, { max_requests: 1 });
      const leader = get('/v1/one');
      await scene.reached(1);
      const waiting = Array.from({ length: 1000 }, () => get('/v1/one', {}, capped.token));
      await scene.inFlight(1001);
      const use = get('/v1/two', { 'Cache-Control': 'no-store' }, capped.token);
      await scene.reached(2);
      held.pop()?.end('used');
      await use;
      await scene.daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`);
      expect((await leader).status).to.equal(401);
      const statuses = (await Promise.all(waiting)).map(({ status }) => status);
      expect(new Set(statuses)).to.deep.equal(new Set([429]));
      await scene.reached(2);
    });

    it('one that waits is refused when its token is revoked, and the others are not', async () => {
      const other = await scene.daemon.createToken(scene.project.id);
      const leader = get('/v1/one');
      await scene.reached(1);
      const waiting = get('/v1/one', {}, other.token);
      await scene.inFlight(2);
      await scene.daemon.manage('DELETE', `/manage/tokens/${other.id}`);
      expect((await waiting).status).to.equal(401);
      letGo();
      expect((await leader).status).to.equal(200);
    });

    it('one that waits and needs another variant asks the upstream itself', async () => {
      const leader = get('/v1/one', { 'X-Flavour': 'a' });
      await scene.reached(1);
      const [same, other] = [get('/v1/one', { 'X-Flavour': 'a' }), get('/v1/one', { 'X-Flavour': 'b' })];
      await scene.inFlight(3);
      letGo({ 'Cache-Control': 'max-age=60', Vary: 'X-Flavour' });
      await leader;
      expect((await same).text).to.equal('answer 1');
      await scene.reached(2);
      letGo({ 'Cache-Control': 'max-age=60', Vary: 'X-Flavour' });
      expect((await other).text).to.equal('answer 2');
      expect((await get('/v1/one', { 'X-Flavour': 'a' })).text).to.equal('answer 1');
      expect((await get('/v1/one', { 'X-Flavour': 'b' })).text).to.equal('answer 2');
    });

    it('after a purge, the response is neither stored nor sent to later requests', async () => {
      const leader = get('/v1/one');
      await scene.reached(1);
      await scene.daemon.manage('POST', '/manage/cache/purge', { method: 'GET', url: '/v1/one' });
      const later = get('/v1/one');
      await scene.reached(2);
      letGo();
      await Promise.all([leader, later]);
      expect(cacheOf(await get('/v1/one'))).to.equal('hit');
      await scene.expectSpent(2);
    });
  });
});
