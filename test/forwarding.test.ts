import { expect } from 'chai';
import { canary } from './support/canaries.js';
import { UPSTREAM_KEY } from './support/daemon.js';
import { type Fields, head, type RawAnswer } from './support/raw.js';
import { expectRefusal, KEY_REJECTED } from './support/refusals.js';
import { Scene } from './support/scene.js';

describe('forwarding', () => {
  let scene: Scene;

  before(async () => {
    scene = await Scene.open();
  });
  beforeEach(() => scene.begin());
  afterEach(() => scene.end());
  after(() => scene.close());

  describe('the headers to the provider', () => {
    /** What the provider got of a request with these fields: values by name in lower case, in the order they came. */
    async function sentUpstream(fields: Fields, secret: string | null = scene.secret): Promise<Map<string, string[]>> {
      expect((await scene.get(secret, fields)).status).to.equal(200);
      const { rawHeaders } = scene.provider.received[0]!;
      const sent = new Map<string, string[]>();
      for (let i = 0; i < rawHeaders.length; i += 2) {
        const name = rawHeaders[i]!.toLowerCase();
        sent.set(name, [...(sent.get(name) ?? []), rawHeaders[i + 1]!]);
      }
      return sent;
    }

    const DROPPED: Record<string, Fields> = {
      'hop-by-hop fields': {
        'Keep-Alive': 'timeout=5',
        'Proxy-Connection': 'keep-alive',
        TE: 'trailers',
        Trailer: 'X-Checksum',
        Upgrade: 'h2c',
        'HTTP2-Settings': 'AAMAAABkAAQAAP__',
      },
      'what Connection names': { Connection: 'close, X-Mine, x-yours', 'X-Mine': 'a', 'X-Yours': 'b' },
      'what a second Connection names': { Connection: ['keep-alive', 'X-Mine'], 'X-Mine': 'a' },
      'other credentials': {
        'X-Api-Key': canary('client'),
        'Api-Key': canary('client'),
        Cookie: `session=${canary('client')}`,
      },
      'who pays': { 'OpenAI-Organization': 'org-1', 'OpenAI-Project': 'proj-1' },
      'who asks': {
        'X-Forwarded-For': '10.0.0.1',
        'X-Forwarded-Proto': 'https',
        'X-Forwarded-Anything': 'a',
        Forwarded: 'for=10.0.0.1',
        'X-Real-IP': '10.0.0.1',
      },
      'Proxy-*': { 'Proxy-Authorization': 'Basic YTpi', 'Proxy-Anything': 'a' },
      'names with an underscore': { Content_Length: '5', X_Forwarded_For: '10.0.0.1', __proto__x: 'a' },
      'names that mean something to JavaScript': { ['__proto__']: 'a', constructor: 'b', prototype: 'c' },
    };
    for (const [what, fields] of Object.entries(DROPPED)) {
      it(`lack ${what}`, async () => {
        const sent = await sentUpstream(fields);
        const leaked = Object.keys(fields).filter((name) => sent.has(name.toLowerCase()) && name !== 'Connection');
        expect(leaked).to.be.empty;
        expect(sent.get('connection')?.join()).to.be.oneOf([undefined, 'keep-alive']);
      });
    }

    it('lack Expect', async () => {
      const client = await scene.client(scene.post({ Expect: '100-continue', 'Content-Length': '2' }));
      expect((await client.answer()).status).to.equal(100);
      client.send('{}');
      await client.answer();
      expect(scene.provider.received[0]!.headers).not.to.have.property('expect');
    });

    it("hold the project's key exactly once, and the client's token nowhere", async () => {
      const sent = await sentUpstream({ Connection: 'authorization, x-request-id, host' });
      expect(sent.get('authorization')).to.deep.equal([`Bearer ${UPSTREAM_KEY}`]);
      expect(JSON.stringify([...sent])).not.to.include(scene.secret.slice(6, 20));
    });

    it("name the upstream's host, whatever the client's says", async () => {
      const sent = await sentUpstream({ Host: 'provider.example' });
      expect(sent.get('host')).to.deep.equal([new URL(scene.provider.url).host]);
    });

    it('hold the request id that the client is told', async () => {
      expect((await sentUpstream({ 'X-Request-ID': 'my-id' })).get('x-request-id')).to.deep.equal(['my-id']);
      scene.provider.received.length = 0;
      const answer = await scene.get(scene.secret, { 'X-Request-ID': 'not an id' });
      expect(scene.provider.received[0]!.headers['x-request-id']).to.equal(answer.header('x-request-id'));
    });

    it('hold everything else as it was sent', async () => {
      const fields = {
        Accept: 'application/json',
        'Accept-Encoding': 'gzip, br;q=0.5',
        'OpenAI-Beta': 'assistants=v2',
        'User-Agent': 'OpenAI/Python 1.0',
        'x-stainless-lang': 'python',
        'X-Repeated': ['a', 'b'],
        'X-Latin': 'caf\xe9',
      };
      const sent = await sentUpstream({ ...fields, Connection: 'close' });
      for (const [name, value] of Object.entries(fields)) {
        expect(sent.get(name.toLowerCase()), name).to.deep.equal([value].flat());
      }
    });

    it('frame the body, even if Connection names its length', async () => {
      await scene.send(scene.post({ Connection: 'content-length, transfer-encoding' }, 'hello'));
      expect(scene.provider.received[0]).to.deep.include({ body: Buffer.from('hello') });
    });
  });

  describe('the headers to the client', () => {
    /** The answer to a request that the provider answers with these fields. */
    async function answerWith(fields: Record<string, string | string[]>): Promise<RawAnswer> {
      scene.provider.answer = (_req, res) => {
        res.writeHead(200, fields);
        res.end('{}');
      };
      return scene.get();
    }

    it('lack hop-by-hop fields and those that Connection names', async () => {
      const answer = await answerWith({
        Connection: ['keep-alive, X-Mine', 'X-Yours'],
        'Keep-Alive': 'timeout=99',
        'Proxy-Authenticate': 'Basic',
        Trailer: 'X-Checksum',
        Upgrade: 'h2c',
        'X-Mine': 'a',
        'X-Yours': 'b',
        'X-Other': 'c',
      });
      for (const name of ['proxy-authenticate', 'trailer', 'upgrade', 'x-mine', 'x-yours']) {
        expect(answer.all(name), name).to.be.empty;
      }
      expect(answer.header('keep-alive')).not.to.equal('timeout=99');
      expect(answer.header('x-other')).to.equal('c');
    });

    it('keep repeated fields apart and in order', async () => {
      const cookies = ['a=1; Path=/', 'b=2', 'c=3'];
      expect((await answerWith({ 'Set-Cookie': cookies })).all('set-cookie')).to.deep.equal(cookies);
    });

    it("hold our X-PROXY-CACHE and X-Token-*, whatever the provider's say", async () => {
      const answer = await answerWith({
        'X-PROXY-CACHE': 'hit',
        'X-Token-Expires-At': 'never',
        'X-Token-Requests-Remaining': '9',
        'X-Upstream-Request-ID': 'forged',
      });
      expect(answer.all('x-proxy-cache')).to.deep.equal(['miss']);
      expect(answer.all('x-token-expires-at')).to.deep.equal([scene.token.expires_at]);
      expect(answer.all('x-token-requests-remaining')).to.be.empty;
      expect(answer.all('x-upstream-request-id')).to.be.empty;
    });

    it("hold our request id, and the provider's under another name", async () => {
      const answer = await answerWith({ 'X-Request-ID': 'req_theirs' });
      expect(answer.header('x-request-id')).to.match(/^[0-9a-f-]{36}$/);
      expect(answer.header('x-upstream-request-id')).to.equal('req_theirs');
    });

    it('add Authorization to Vary', async () => {
      expect((await answerWith({})).header('vary')).to.equal('Authorization');
      expect((await answerWith({ Vary: ['Accept', 'Origin'] })).header('vary')).to.equal(
        'Accept, Origin, Authorization',
      );
    });

    it('tell what the upstream and what the proxy took', async () => {
      expect((await answerWith({})).header('server-timing')).to.match(
        /^upstream;dur=\d+(\.\d+)?, proxy;dur=\d+(\.\d+)?$/,
      );
    });

    it('count down what is left of a cap, and say nothing of it without one', async () => {
      const capped = await scene.daemon.createToken(scene.project.id, { max_requests: 2 });
      const remaining = async (secret: string) => (await scene.get(secret)).header('x-token-requests-remaining');
      expect(await remaining(capped.token)).to.equal('1');
      expect(await remaining(capped.token)).to.equal('0');
      expect(await remaining(scene.secret)).to.equal(undefined);
    });

    it('forbid buffering of event streams, and of nothing else', async () => {
      const buffering = async (type: string) =>
        (await answerWith({ 'Content-Type': type })).header('x-accel-buffering');
      expect(await buffering('text/event-stream; charset=utf-8')).to.equal('no');
      expect(await buffering('application/json')).to.equal(undefined);
    });

    it('hold everything else as it was sent', async () => {
      const fields = { 'Content-Type': 'text/x', 'openai-organization': 'org', 'x-ratelimit-limit': '1', ETag: '"a"' };
      const answer = await answerWith(fields);
      for (const [name, value] of Object.entries(fields)) expect(answer.header(name), name).to.equal(value);
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
      it(`passes unchanged: ${target}`, async () => {
        await scene.send(head(`GET ${target}`, scene.secret));
        expect(scene.provider.received[0]!.url).to.equal(target);
      });
    }

    it('is put behind the path of UPSTREAM_BASE_URL', async () => {
      const based = await Scene.open({}, `${scene.provider.url}/openai/deployments/`);
      try {
        await based.get();
        expect(scene.provider.received[0]!.url).to.equal('/openai/deployments/v1/models');
      } finally {
        await based.close();
      }
    });
  });

  describe('the method', () => {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
      it(`${method} passes with its body`, async () => {
        const answer = await scene.send(head(`${method} /v1/echo`, scene.secret, { 'Content-Length': '5' }) + 'hello');
        expect(answer.text).to.equal('hello');
        expect(scene.provider.received[0]).to.deep.include({ method, body: Buffer.from('hello') });
      });
    }
  });

  describe('the status', () => {
    const STATUSES: [number, Record<string, string>][] = [
      [201, {}],
      [204, {}],
      [302, { Location: 'http://elsewhere.example/v1/models' }],
      [304, { ETag: '"a"' }],
      [400, {}],
      [403, {}],
      [404, {}],
      [418, {}],
      [429, { 'Retry-After': '20', 'x-ratelimit-remaining-requests': '0' }],
      [500, {}],
      [503, { 'Retry-After': '7' }],
    ];
    for (const [status, fields] of STATUSES) {
      it(`${status} passes with its headers and body, and is asked for once`, async () => {
        scene.provider.answer = (_req, res) => {
          res.writeHead(status, fields);
          res.end(status === 204 || status === 304 ? undefined : '{"theirs":true}');
        };
        const answer = await scene.get();
        expect(answer.status).to.equal(status);
        for (const [name, value] of Object.entries(fields)) expect(answer.header(name)).to.equal(value);
        expect(answer.text).to.equal(status === 204 || status === 304 ? '' : '{"theirs":true}');
        await scene.expectSpent(1);
      });
    }

    it('401 is our own failure: 502', async () => {
      scene.provider.answer = (_req, res) => {
        res.writeHead(401).end(`Incorrect API key provided: ${UPSTREAM_KEY}`);
      };
      expectRefusal(await scene.get(), KEY_REJECTED);
    });
  });
});
