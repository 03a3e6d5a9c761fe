import { expect } from 'chai';
import type { WireTokenCreated } from '../../../daemon/api/contract.js';
import type { TokenSelf } from '../../../daemon/api/token-self.js';
import { eventually } from '../../support/eventually.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { head, type RawResponse } from '../../support/raw.js';
import { Realtime } from '../../support/realtime.js';
import { type Expected, expectRefusal } from '../../support/refusals.js';
import { itInOneProcess } from '../../support/test-workers.js';

const RATE_LIMITED: Expected = { status: 429, code: 'rate_limited' };
const CONCURRENCY_LIMITED: Expected = { status: 429, code: 'concurrency_limited' };
const MINUTE_MS = 60_000;

describe('limits of a token and its project', () => {
  const scene = ProxyFixture.forEachTest({ HTTP_CACHE_ENABLED: 'true' });
  const tokenWith = (limits: object, more: object = {}) =>
    scene.daemon.createToken(scene.project.id, { limits, ...more });
  const limitProject = (limits: object | null) =>
    scene.daemon.manage('PATCH', `/manage/projects/${scene.project.id}`, { limits });
  const complete = (token: WireTokenCreated, fields = {}) => {
    const body = '{"model":"gpt-5-mini"}';
    const all = { 'Content-Type': 'application/json', 'Content-Length': String(body.length), ...fields };
    return scene.send(head('POST /v1/chat/completions', token.token, all) + body);
  };
  const self = async (token: WireTokenCreated) =>
    ((await (await scene.daemon.call(token.token, '/token/self')).json()) as TokenSelf).limits;

  function refusedBy(answer: RawResponse, expected: Expected, policy: string): number {
    expectRefusal(answer, expected);
    expect(answer.header('ratelimit-policy')).to.equal(policy);
    const waitS = Number(answer.header('retry-after'));
    expect(waitS).to.be.within(1, 60);
    return waitS;
  }

  it('refuses more requests in a minute, and says when the next one is admitted', async () => {
    const token = await tokenWith({ requests_per_minute: 3 });
    for (let n = 0; n < 3; n++) expect((await complete(token)).status).to.equal(200);
    const waitS = refusedBy(await complete(token), RATE_LIMITED, '"token";q=3;w=60');
    scene.daemon.clock.advance(waitS * 1_000 + 1_000);
    expect((await complete(token)).status).to.equal(200);
    expect(scene.provider.received).to.have.length(4);
    expect(await scene.uses(token.id)).to.equal(4);
  });

  it('counts all tokens of a project together', async () => {
    await limitProject({ requests_per_minute: 3 });
    const tokens = [await tokenWith({ requests_per_minute: 2 }), await tokenWith({ concurrent: 9 })];
    expect((await complete(tokens[0]!)).status).to.equal(200);
    expect((await complete(tokens[0]!)).status).to.equal(200);
    refusedBy(await complete(tokens[0]!), RATE_LIMITED, '"token";q=2;w=60');
    expect((await complete(tokens[1]!)).status).to.equal(200);
    refusedBy(await complete(tokens[1]!), RATE_LIMITED, '"project";q=3;w=60');
    await limitProject(null);
    expect((await complete(tokens[1]!)).status).to.equal(200);
  });

  it('holds a change from the next request on', async () => {
    const token = await tokenWith({ requests_per_minute: 1 });
    expect((await complete(token)).status).to.equal(200);
    expectRefusal(await complete(token), RATE_LIMITED);
    await scene.daemon.manage('PATCH', `/manage/tokens/${token.id}`, { limits: { requests_per_minute: 2 } });
    expect((await complete(token)).status).to.equal(200);
    expectRefusal(await complete(token), RATE_LIMITED);
    await scene.daemon.manage('PATCH', `/manage/tokens/${token.id}`, { limits: null });
    expect((await complete(token)).status).to.equal(200);
  });

  it('refuses more requests at the same time, and frees the slot however a request ends', async () => {
    const token = await tokenWith({ concurrent: 2 });
    const freed = async () => {
      await scene.inFlight(0);
      expect(await self(token))
        .to.have.property('concurrent')
        .that.deep.equals({ limit: 2, remaining: 2 });
    };
    for (const ending of ['complete', 'client leaves', 'provider leaves', 'revoked'] as const) {
      const waiting: (() => void)[] = [];
      scene.provider.received.length = 0;
      scene.provider.answer = async (_req, res) => {
        await new Promise<void>((resolve) => waiting.push(resolve));
        if (ending === 'provider leaves') res.destroy();
        else res.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
      };
      const bytes = head('POST /v1/chat/completions', token.token, { 'Content-Length': '2' }) + '{}';
      const clients = [await scene.client(bytes), await scene.client(bytes)];
      await scene.reached(2);
      refusedBy(await complete(token), CONCURRENCY_LIMITED, '"token";q=2;w=60');
      if (ending === 'client leaves') for (const client of clients) client.destroy();
      if (ending === 'revoked') {
        await scene.daemon.manage('PATCH', `/manage/tokens/${token.id}`, { is_active: false });
        await scene.daemon.manage('PATCH', `/manage/tokens/${token.id}`, { is_active: true });
      }
      for (const go of waiting) go();
      await freed();
    }
    scene.provider.answer = undefined;
    expect((await scene.get(token.token)).status).to.equal(200);
  });

  it('does not count responses from the cache', async () => {
    scene.provider.answer = (_req, res) => {
      res.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'public, max-age=600' }).end('{}');
    };
    const token = await tokenWith({ requests_per_minute: 1, concurrent: 1 });
    for (let n = 0; n < 5; n++) expect((await scene.get(token.token)).status).to.equal(200);
    expect(scene.provider.received).to.have.length(1);
    expect(await self(token)).to.deep.equal({
      requests_per_minute: { limit: 1, remaining: 0 },
      tokens_per_minute: null,
      concurrent: { limit: 1, remaining: 1 },
    });
  });

  // When the clock jumps, a worker may be taken for dead, and the units that it has leased count as used.
  itInOneProcess(
    'takes no unit of a cap for what it refuses, and nothing of a limit for what the cap refuses',
    async () => {
      const token = await tokenWith({ requests_per_minute: 2 }, { max_requests: 3 });
      expect((await complete(token)).status).to.equal(200);
      expect((await complete(token)).status).to.equal(200);
      expectRefusal(await complete(token), RATE_LIMITED);
      expect(await scene.uses(token.id)).to.equal(2);
      scene.daemon.clock.advance(2 * MINUTE_MS);
      expect((await complete(token)).status).to.equal(200);
      expectRefusal(await complete(token), { status: 429, code: 'request_limit_reached' });
      expect(await self(token))
        .to.have.property('requests_per_minute')
        .that.deep.equals({ limit: 2, remaining: 1 });
    },
  );

  it('settles tokens with the usage that the provider reports, and pays off what was more', async () => {
    const token = await tokenWith({ tokens_per_minute: 1_000 });
    const left = async () =>
      ((await self(token)) as { tokens_per_minute: { remaining: number } }).tokens_per_minute.remaining;
    let used = 100;
    scene.provider.answer = (_req, res) => {
      res.writeHead(200, { 'Content-Type': 'application/json' });
      res.end(
        JSON.stringify({
          model: 'gpt-5-mini',
          usage: { prompt_tokens: used, completion_tokens: 0, total_tokens: used },
        }),
      );
    };
    expect((await complete(token)).status).to.equal(200);
    await eventually('the usage is known', async () => (await left()) === 900);
    used = 3_000;
    expect((await complete(token)).status).to.equal(200);
    await eventually('the usage is known', async () => (await left()) === 0);
    scene.daemon.clock.advance(MINUTE_MS + 30_000);
    refusedBy(await complete(token), RATE_LIMITED, '"token";q=1000;w=60');
    scene.daemon.clock.advance(2 * MINUTE_MS);
    expect((await complete(token)).status).to.equal(200);
  });

  it('holds a slot for the life of a WebSocket', async () => {
    const token = await tokenWith({ concurrent: 1 });
    const realtime = new Realtime(scene.provider);
    for (const target of ['/v1/realtime?model=gpt-realtime', '/v1/responses']) {
      const { client } = await realtime.begin(scene.daemon.url, token.token, { target });
      expectRefusal(await complete(token), CONCURRENCY_LIMITED);
      client.terminate();
      await scene.inFlight(0);
      expect((await complete(token)).status).to.equal(200);
    }
    realtime.close();
  });

  it('charges each response on a WebSocket, also after one for which nothing is generated', async () => {
    const other = await ProxyFixture.open({ COUNT_READS: 'false' });
    const realtime = new Realtime(other.provider);
    try {
      const token = await other.daemon.createToken(other.project.id, { limits: { tokens_per_minute: 10_000 } });
      const { client, socket } = await realtime.begin(other.daemon.url, token.token, { target: '/v1/responses' });
      let asked = 0;
      socket.on('message', () => (asked += 1));
      const completed = (total_tokens: number) => {
        socket.send('{"type":"response.created","response":{}}');
        socket.send(JSON.stringify({ type: 'response.completed', response: { usage: { total_tokens } } }));
      };
      client.send('{"type":"response.create","generate":false}');
      client.send('{"type":"response.create"}');
      await eventually('both are asked for', () => asked === 2);
      completed(1);
      completed(5_000);
      await eventually('both are recorded', () => other.daemon.ended.length === 2);
      const held = (await (await other.daemon.call(token.token, '/token/self')).json()) as { limits: object };
      expect(held.limits).to.deep.include({ tokens_per_minute: { limit: 10_000, remaining: 4_999 } });
    } finally {
      realtime.close();
      await other.close();
    }
  });

  it('gives back what a large request took whose model turns out to be forbidden', async () => {
    const limits = { requests_per_minute: 1, concurrent: 1, tokens_per_minute: 1_000 };
    const token = await tokenWith(limits, { allow: { models: ['gpt-5-mini'] } });
    const body = `{"input":"${'a'.repeat(3_000_000)}","model":"gpt-5"}`;
    const fields = { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
    const answer = await scene.send(head('POST /v1/chat/completions', token.token, fields) + body);
    expect(answer.json.code).to.equal('model_not_allowed');
    expect(scene.provider.received).to.have.length(1);
    await scene.inFlight(0);
    // A worker returns the slot to the primary, which may take longer than its request.
    await eventually('the slot is free', async () => (await self(token))?.concurrent?.remaining === 1);
    expect(await self(token)).to.deep.equal({
      requests_per_minute: { limit: 1, remaining: 1 },
      tokens_per_minute: { limit: 1_000, remaining: 1_000 },
      concurrent: { limit: 1, remaining: 1 },
    });
    expect((await complete(token)).status).to.equal(200);
  });

  it('is refused in the client’s dialect', async () => {
    const token = await tokenWith({ requests_per_minute: 1 });
    await complete(token);
    const answer = await complete(token, { 'anthropic-version': '2023-06-01' });
    expect(answer.status).to.equal(429);
    expect(answer.json).to.deep.include({ type: 'error' });
    expect((answer.json.error as { type: string }).type).to.equal('rate_limit_error');
  });
});
