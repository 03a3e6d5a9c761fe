import { expect } from 'chai';
import { isRead } from '../../daemon/core/content/runs-model.js';
import { UPSTREAM_KEY } from '../support/daemon.js';
import { head } from '../support/raw.js';
import { json } from '../support/provider.js';
import { ProxyFixture } from '../support/proxy-fixture.js';

describe('requests that run no model', function () {
  this.timeout(30_000);

  const READS: [method: string, target: string][] = [
    ['GET', '/v1/models'],
    ['HEAD', '/v1/models/gpt-test'],
    ['GET', '/v1/responses/resp_1?stream=true'],
    ['POST', '/v1/messages/count_tokens'],
    ['POST', '/v1/messages/count_tokens?beta=true'],
    ['POST', '/v1/responses/input_tokens'],
    ['POST', '/v1beta/models/gemini-2.5-flash:countTokens'],
  ];

  it('are GET, HEAD, and POST to what counts tokens', () => {
    for (const [method, target] of READS) expect(isRead(method, target, method === 'POST'), target).to.equal(true);
    for (const [method, target] of [
      ['GET', '/v1/models'], // It has a body here.
      ['DELETE', '/v1/models/gpt-test'],
      ['POST', '/v1/messages'],
      ['POST', '/v1/messages/count_tokens/'],
      ['POST', '/v1/messages?x=/messages/count_tokens'],
      ['POST', '/v1/messages%3F/messages/count_tokens'],
      ['POST', '/v1beta/models/m:generateContent'],
      ['POST', '/v1beta/models/m%3AcountTokens'],
      ['PUT', '/v1/messages/count_tokens'],
    ] as const) {
      expect(isRead(method, target, true), `${method} ${target}`).to.equal(false);
    }
  });

  /** One request after the other, each with a body if it is a POST. */
  async function statuses(scene: ProxyFixture, secret: string, requests: readonly [string, string][]) {
    const seen: number[] = [];
    for (const [method, target] of requests) {
      const init = { method, ...(method === 'POST' && { body: '{"model":"m"}' }) };
      const response = await scene.daemon.call(secret, target, init);
      await response.arrayBuffer();
      seen.push(response.status);
    }
    return seen;
  }

  const USE: [string, string] = ['POST', '/v1/chat/completions'];

  describe('with COUNT_READS=false', () => {
    let scene: ProxyFixture;
    before(async () => {
      scene = await ProxyFixture.open({ COUNT_READS: 'false', LLM_PROXY_EVENT_BUS: 'in-memory' });
    });
    beforeEach(async () => {
      await scene.begin();
      scene.provider.answer = (_req, res) => {
        json(res, 200, {});
      };
    });
    afterEach(() => scene.end());
    after(() => scene.close());

    it('spend no unit of a cap, but are forwarded and recorded', async () => {
      const { id, token } = await scene.daemon.createToken(scene.project.id, { max_requests: 1 });
      expect(await statuses(scene, token, READS)).to.deep.equal(READS.map(() => 200));
      expect(await scene.daemon.token(id)).to.include({ request_count: 0, state: 'active' });
      expect((await scene.daemon.token(id)).last_used_at).to.be.a('string');
      expect(await statuses(scene, token, [USE])).to.deep.equal([200]);
      expect(scene.provider.received).to.have.lengthOf(READS.length + 1);
      expect(scene.daemon.ended.filter(({ isForwarded }) => isForwarded)).to.have.lengthOf(READS.length + 1);
    });

    it('are refused with a cap that is used up, and with a revoked token', async () => {
      const { id, token } = await scene.daemon.createToken(scene.project.id, { max_requests: 1 });
      expect(await statuses(scene, token, [USE])).to.deep.equal([200]);
      expect(await statuses(scene, token, READS)).to.deep.equal(READS.map(() => 429));
      const other = await scene.daemon.createToken(scene.project.id, { max_requests: 2 });
      expect(await statuses(scene, other.token, [['GET', '/v1/models']])).to.deep.equal([200]);
      await scene.daemon.manage('DELETE', `/manage/tokens/${other.id}`);
      expect(await statuses(scene, other.token, READS)).to.deep.equal(READS.map(() => 401));
      expect(await scene.daemon.token(id)).to.include({ request_count: 1 });
      expect(scene.provider.received).to.have.lengthOf(2);
    });

    it('are not counted for an unlimited token either, and are in the usage of its project', async () => {
      const project = await scene.daemon.createProject({ api_key: UPSTREAM_KEY });
      const { id, token } = await scene.daemon.createToken(project.id);
      await statuses(scene, token, [['GET', '/v1/models'], USE]);
      expect(await scene.daemon.token(id)).to.include({ request_count: 1 });
      const usage = await scene.daemon.manage('GET', `/manage/usage?project_id=${project.id}`);
      expect(usage.body).to.have.nested.property('[0].requests', 2);
    });

    it('do not include a GET with a body', async () => {
      const { id, token } = await scene.daemon.createToken(scene.project.id, { max_requests: 5 });
      const request = head('GET /v1beta/models/m:generateContent', token, { 'Content-Length': '2' });
      expect((await scene.send(`${request}{}`)).status).to.equal(200);
      expect(await scene.daemon.token(id)).to.include({ request_count: 1 });
    });

    it('leave a cap exact for the requests that run one, at once with them', async () => {
      const { id, token } = await scene.daemon.createToken(scene.project.id, { max_requests: 30 });
      const uses = Array.from({ length: 80 }, () => statuses(scene, token, [['GET', '/v1/models'], USE]));
      const seen = await Promise.all(uses);
      expect(seen.filter(([, use]) => use === 200)).to.have.lengthOf(30);
      expect(scene.provider.received.filter(({ method }) => method === 'POST')).to.have.lengthOf(30);
      expect(await scene.daemon.token(id)).to.include({ request_count: 30, state: 'rate_limited' });
    });
  });

  it('count as uses by default', async () => {
    const scene = await ProxyFixture.open();
    const { id, token } = await scene.daemon.createToken(scene.project.id, { max_requests: 2 });
    scene.provider.answer = (_req, res) => {
      json(res, 200, {});
    };
    expect(await statuses(scene, token, READS.slice(2, 5))).to.deep.equal([200, 200, 429]);
    expect(await scene.daemon.token(id)).to.include({ request_count: 2 });
    await scene.close();
  });
});
