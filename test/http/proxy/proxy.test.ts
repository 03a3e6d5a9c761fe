import { expect } from 'chai';
import { mintSecret } from '../../../daemon/core/token.js';
import { eventually } from '../../support/eventually.js';
import { type DatabaseOutage, makeDatabaseUnreachable } from '../../support/database-outage.js';
import { chunk, type Fields, type RawResponse, RawClient } from '../../support/raw.js';
import {
  BODY_TOO_LARGE,
  type Expected,
  expectRefusal,
  LIMIT_REACHED,
  PROJECT_INACTIVE,
  REQUEST_TIMEOUT,
  UNAUTHORIZED,
  UNAVAILABLE,
} from '../../support/refusals.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';

const MINUTE_MS = 60_000;

// The steps of a request, as in daemon/http/proxy/admit.ts. The first, the shape, is in proxy-shape.test.ts.
describe('a request on /v1', () => {
  let scene: ProxyFixture;

  before(async () => {
    scene = await ProxyFixture.open({
      MAX_REQUEST_SIZE: '200KB',
      REQUEST_TIMEOUT: '60s',
      CLIENT_BODY_TIMEOUT: '5s',
      UPSTREAM_CONNECTIONS: '1',
      UPSTREAM_CONNECT_TIMEOUT: '10s',
      TOKEN_STALE_LIMIT: '60s',
    });
  });
  beforeEach(() => scene.begin());
  afterEach(() => scene.end());
  after(() => scene.close());

  describe('3 credential', () => {
    it('refuses a request without a credential', async () => {
      const answer = await scene.get(null);
      expectRefusal(answer, UNAUTHORIZED);
      expect(answer.header('www-authenticate')).to.equal('Bearer');
      await scene.expectSpent(0);
    });

    it('refuses a wrong checksum without a database lookup', async () => {
      const { stores, usage } = scene.daemon.daemon;
      const { database } = stores;
      await usage.flush(); // Writes earlier usage, so that it does not interfere.
      const before = database.statements;
      expectRefusal(await scene.get(`sk-wt-${'a'.repeat(49)}`), UNAUTHORIZED);
      expect(database.statements).to.equal(before);
    });
  });

  describe('4 admission', () => {
    type Failure = 'revoked' | 'expired' | 'inactive' | 'exhausted';

    /** Makes a token fail in all these ways, and returns the response to its next request. */
    async function answerTo(failures: readonly Failure[]): Promise<RawResponse> {
      const { daemon } = scene;
      const project = await daemon.createProject();
      const token = await daemon.createToken(project.id, { duration_minutes: 1, max_requests: 1 });
      if (failures.includes('exhausted')) expect((await scene.get(token.token)).status).to.equal(200);
      if (failures.includes('expired')) daemon.clock.advance(MINUTE_MS);
      if (failures.includes('revoked')) await daemon.manage('DELETE', `/manage/tokens/${token.id}`);
      if (failures.includes('inactive')) await daemon.manage('PATCH', `/manage/projects/${project.id}`, INACTIVE);
      scene.provider.received.length = 0;
      const answer = await scene.get(token.token);
      expect(scene.provider.received, 'requests at the provider').to.be.empty;
      expect(await scene.uses(token.id), 'uses').to.equal(failures.includes('exhausted') ? 1 : 0);
      return answer;
    }
    const INACTIVE = { is_active: false };

    const CHECKS: [Failure[], Expected][] = [
      [['revoked'], UNAUTHORIZED],
      [['expired'], UNAUTHORIZED],
      [['inactive'], PROJECT_INACTIVE],
      [['exhausted'], LIMIT_REACHED],
    ];
    for (const [failures, expected] of CHECKS) {
      it(`answers ${expected.status} when the token is ${failures.join(' and ')}, and spends nothing`, async () => {
        expectRefusal(await answerTo(failures), expected);
      });
    }

    it('sends no Retry-After when the cap is reached: waiting does not help', async () => {
      expect((await answerTo(['exhausted'])).header('retry-after')).to.equal(undefined);
    });

    it('forwards exactly as many requests as the cap allows, however many arrive at once', async () => {
      const { token } = await scene.daemon.createToken(scene.project.id, { max_requests: 5 });
      const answers = await Promise.all(Array.from({ length: 20 }, () => scene.get(token)));
      expect(answers.filter(({ status }) => status === 200)).to.have.lengthOf(5);
      expect(answers.filter(({ status }) => status === 429)).to.have.lengthOf(15);
      expect(scene.provider.received).to.have.lengthOf(5);
    });

    describe('while the database is unavailable', () => {
      let outage: DatabaseOutage;
      beforeEach(() => {
        outage = makeDatabaseUnreachable(scene.daemon);
      });
      afterEach(() => {
        outage.end();
      });

      it('answers 503 with Retry-After to an unknown token, not 401', async () => {
        const answer = await scene.get(mintSecret());
        expectRefusal(answer, UNAVAILABLE);
        expect(answer.header('retry-after')).to.match(/^\d+$/);
      });

      it('serves a known token for TOKEN_STALE_LIMIT, then answers 503', async () => {
        const { clock } = scene.daemon;
        clock.advance(MINUTE_MS - 1000);
        expect((await scene.get()).status).to.equal(200);
        clock.advance(1000);
        expectRefusal(await scene.get(), UNAVAILABLE);
      });
    });
  });

  describe('7 forward: the body', () => {
    const CHUNKED: Fields = { 'Transfer-Encoding': 'chunked' };
    const CONTINUE: Fields = { Expect: '100-continue', 'Content-Length': '5' };

    it('answers 408 when a small one stops arriving, and spends nothing, even if the rest arrives later', async () => {
      const client = await scene.client(scene.post({ 'Content-Length': '10' }, 'begin'));
      await scene.inFlight(1);
      scene.daemon.clock.advance(5_000);
      expectRefusal(await client.response(), REQUEST_TIMEOUT);
      client.send('& end');
      await eventually('the connection serves again', async () => {
        client.send(scene.post({}, 'next'));
        return (await client.response()).text === 'next';
      });
      await scene.expectSpent(1);
    });

    it('answers 408 when a streaming one stops: the use stays counted, the upstream request is aborted', async () => {
      const client = await scene.client(scene.post(CHUNKED, chunk('begin')));
      await scene.reached();
      scene.daemon.clock.advance(5_000);
      expectRefusal(await client.response(), REQUEST_TIMEOUT);
      await scene.aborted();
      await scene.expectSpent(1);
    });

    it('is requested with 100 Continue only after admission', async () => {
      const client = await scene.client(scene.post(CONTINUE));
      expect((await client.response()).status).to.equal(100);
      client.send('hello');
      expect(await client.response()).to.include({ status: 200, text: 'hello' });
    });

    it('is not requested for a bad token: the first response is the 401', async () => {
      const client = await scene.client(scene.post(CONTINUE, '', mintSecret()));
      expectRefusal(await client.response(), UNAUTHORIZED);
      await client.closed;
    });

    it('is not requested if it would be too large: the first response is the 413', async () => {
      const client = await scene.client(scene.post({ ...CONTINUE, 'Content-Length': '200001' }));
      expectRefusal(await client.response(), BODY_TOO_LARGE);
      await client.closed;
      await scene.expectSpent(0);
    });
  });

  describe('7 forward: the upstream', () => {
    it('answers 503 if no connection becomes free within UPSTREAM_CONNECT_TIMEOUT, and spends nothing', async () => {
      scene.provider.answer = () => undefined;
      await scene.client(scene.post({}));
      await scene.reached();
      const other = await scene.daemon.createToken(scene.project.id);
      const waiting = scene.send(scene.post({}, '{}', other.token));
      await scene.inFlight(2);
      scene.daemon.clock.advance(10_000);
      const answer = await waiting;
      expectRefusal(answer, UNAVAILABLE);
      expect(answer.header('retry-after')).to.match(/^\d+$/);
      expect(await scene.uses(other.id)).to.equal(0);
      expect(scene.provider.received).to.have.lengthOf(1);
    });
  });

  describe('8 completion', () => {
    it('publishes one record with the request, the token and the outcome, without the query', async () => {
      await scene.get(scene.secret, { 'X-Request-ID': 'my-id' });
      const { durationMs, firstByteMs, upstreamMs, timeMs, bytesOut, ...ended } = await scene.onlyRecord();
      expect([upstreamMs, firstByteMs, durationMs]).to.satisfy(([upstream, first, whole]: number[]) =>
        [0, upstream, first, whole].every((ms, i, all) => i === 0 || (ms ?? -1) >= (all[i - 1] ?? 0)),
      );
      expect(timeMs).to.be.closeTo(scene.daemon.clock.now(), 10_000);
      expect(bytesOut).to.be.above(0);
      expect(ended).to.deep.equal({
        requestId: 'my-id',
        projectId: scene.project.id,
        tokenId: scene.token.id,
        tokenName: null,
        projectName: scene.project.name,
        obfuscated: scene.token.obfuscated,
        clientIp: '127.0.0.1',
        method: 'GET',
        path: '/v1/models',
        status: 200,
        code: null,
        problem: null,
        outcome: 'ok',
        isForwarded: true,
        cache: 'miss',
        bytesIn: 0,
        streamed: false,
        isModelAnswered: false,
        upstreamRequestId: 'req_upstream_1',
        model: null,
        usage: null,
        requestBody: null,
        responseBody: null,
      });
    });

    it('has the token of a refused request if it is known', async () => {
      await scene.daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`);
      await scene.get();
      const known = { tokenId: scene.token.id, projectId: scene.project.id, obfuscated: scene.token.obfuscated };
      expect(await scene.onlyRecord()).to.include({ ...known, status: 401, outcome: 'refused', upstreamMs: null });
    });

    it('publishes one for a request without a token too', async () => {
      await scene.get(null);
      expect(await scene.onlyRecord()).to.include({
        tokenId: null,
        projectId: null,
        status: 401,
        code: 'unauthorized',
      });
    });

    it('releases the upstream connection, whatever the outcome', async () => {
      scene.provider.answer = () => undefined;
      for (let i = 0; i < 3; i++) {
        const client = await RawClient.to(scene.daemon.url);
        client.send(scene.post({}));
        await scene.reached(i + 1);
        client.destroy();
        await scene.inFlight(0);
      }
      scene.provider.answer = undefined;
      expect((await scene.get()).status).to.equal(200);
    });
  });
});
