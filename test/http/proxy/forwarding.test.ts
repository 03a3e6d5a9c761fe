import { VARY_BY_CARRIER } from '../../../daemon/http/request-head.js';
import { expect } from 'chai';
import { head, type RawResponse } from '../../support/raw.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';

describe('forwarding', () => {
  const scene = ProxyFixture.forSuite();

  describe('the headers to the client', () => {
    /** The response to a request that the provider answers with these headers. */
    async function answerWith(fields: Record<string, string | string[]>): Promise<RawResponse> {
      scene.provider.answer = (_req, res) => {
        res.writeHead(200, fields);
        res.end('{}');
      };
      return scene.get();
    }

    it('name in Vary every header that may carry a token', async () => {
      expect((await answerWith({})).header('vary')).to.equal(VARY_BY_CARRIER);
      expect((await answerWith({ Vary: ['Accept', 'Origin'] })).header('vary')).to.equal(
        `Accept, Origin, ${VARY_BY_CARRIER}`,
      );
    });

    it('contain a key that is only a placeholder', async () => {
      const project = await scene.daemon.createProject({ api_key: 'ollama' });
      const { token } = await scene.daemon.createToken(project.id);
      scene.provider.answer = (_req, res) => {
        res.writeHead(200, { 'X-Powered-By': 'ollama' }).end('{}');
      };
      expect((await scene.get(token)).header('x-powered-by')).to.equal('ollama');
    });

    it('have the time taken by the upstream and by the proxy', async () => {
      expect((await answerWith({})).header('server-timing')).to.match(
        /^upstream;dur=\d+(\.\d+)?, proxy;dur=\d+(\.\d+)?$/,
      );
    });

    it('have the remaining requests of a cap, if there is one', async () => {
      const capped = await scene.daemon.createToken(scene.project.id, { max_requests: 2 });
      const remaining = async (secret: string) => (await scene.get(secret)).header('x-token-requests-remaining');
      expect(await remaining(capped.token)).to.equal('1');
      expect(await remaining(capped.token)).to.equal('0');
      expect(await remaining(scene.secret)).to.equal(undefined);
    });

    it('forbid buffering of event streams only', async () => {
      const buffering = async (type: string) =>
        (await answerWith({ 'Content-Type': type })).header('x-accel-buffering');
      expect(await buffering('text/event-stream; charset=utf-8')).to.equal('no');
      expect(await buffering('application/json')).to.equal(undefined);
    });
  });

  describe('the target', () => {
    for (const target of [
      '/v1/models?limit=2&after=a%20b&x=%2F+&x=2&empty=&q=caf%C3%A9',
      '/v1/files/a%2Fb/content',
      '/v1/Models/GPT-4%2fO',
      '/v1/models/ft:gpt-4o:org::id',
      '/v1/models?url=http://a//b/../c',
      '/v1',
    ]) {
      it(`is forwarded unchanged: ${target}`, async () => {
        await scene.send(head(`GET ${target}`, scene.secret));
        expect(scene.provider.received[0]!.url).to.equal(target);
      });
    }

    it('is appended to the path of UPSTREAM_BASE_URL', async () => {
      const based = await ProxyFixture.open({}, `${scene.provider.url}/openai/deployments/`);
      try {
        await based.get();
        expect(scene.provider.received[0]!.url).to.equal('/openai/deployments/v1/models');
      } finally {
        await based.close();
      }
    });

    for (const [path, target] of [
      ['/v1', '/v1/models'],
      ['/v1/', '/v1/models'],
      ['/openai/v1', '/openai/v1/models'],
    ] as const) {
      it(`has /v1 once if UPSTREAM_BASE_URL is the base URL of an SDK and ends with ${path}`, async () => {
        const based = await ProxyFixture.open({}, `${scene.provider.url}${path}`);
        try {
          await based.get();
          expect(scene.provider.received[0]!.url).to.equal(target);
        } finally {
          await based.close();
        }
      });
    }
  });

  describe('the method', () => {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
      it(`${method} is forwarded with its body`, async () => {
        const answer = await scene.send(head(`${method} /v1/echo`, scene.secret, { 'Content-Length': '5' }) + 'hello');
        expect(answer.text).to.equal('hello');
        expect(scene.provider.received[0]).to.deep.include({ method, body: Buffer.from('hello') });
      });
    }
  });
});
