import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { expect } from 'chai';
import { mintSecret } from '../../../daemon/core/token.js';
import { UPSTREAM_KEY } from '../../support/daemon.js';
import { secretsIn } from '../../support/canaries.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { CREDENTIAL_IN_URL, expectRefusal } from '../../support/refusals.js';
import { type Fields, head, type RawResponse, WEBSOCKET } from '../../support/raw.js';

describe('a token in ?key=', function () {
  this.timeout(30_000);

  describe('with QUERY_KEY=accept', () => {
    const scene = ProxyFixture.forSuite({
      QUERY_KEY: 'accept',
      HTTP_CACHE_ENABLED: 'true',
      LLM_PROXY_EVENT_BUS: 'in-memory',
    });
    beforeEach(() => {
      scene.provider.answer = (_req, res) => {
        res.writeHead(200, { 'Cache-Control': 'no-store' }).end('{}');
      };
    });
    afterEach(() => {
      expect(secretsIn(JSON.stringify(scene.daemon.ended) + scene.daemon.logged.join(''))).to.deep.equal([]);
    });

    const ask = (target: string, secret: string | null = null, fields: Fields = {}): Promise<RawResponse> =>
      scene.send(head(`GET ${target}`, secret, fields));

    /** A client that sends `?key=` is one of Google's. */
    const expectGooglesRefusal = (answer: RawResponse, status: number, code: string) => {
      expect(answer.json).to.have.nested.property('error.code', status);
      expect(answer.json).to.have.nested.property('error.details[0].metadata.code', code);
    };

    it('is taken from any position of the query, which is forwarded without it', async () => {
      const key = `key=${scene.secret}`;
      for (const [target, forwarded] of [
        [`/v1beta/models?${key}`, '/v1beta/models'],
        [`/v1beta/models?${key}&alt=sse`, '/v1beta/models?alt=sse'],
        [`/v1beta/models?alt=sse&${key}`, '/v1beta/models?alt=sse'],
        [`/v1beta/models?a=%26&${key}&b=c&&d`, '/v1beta/models?a=%26&b=c&&d'],
      ] as const) {
        const answer = await ask(target);
        expect(answer.status, forwarded).to.equal(200);
        const received = scene.provider.received.at(-1);
        expect(received?.url).to.equal(forwarded);
        expect(received?.headers).to.include({ authorization: `Bearer ${UPSTREAM_KEY}` });
        expect(received?.headers).not.to.have.property('x-goog-api-key');
      }
      expect(await scene.uses()).to.equal(4);
      expect(scene.daemon.ended.every(({ path }) => path === '/v1beta/models')).to.equal(true);
    });

    it('is taken on the handshake of a WebSocket', async () => {
      const received: IncomingMessage[] = [];
      scene.provider.server.once('upgrade', (req: IncomingMessage, socket: Socket) => {
        received.push(req);
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}');
      });
      expect((await ask(`/v1/realtime?model=m&key=${scene.secret}`, null, WEBSOCKET)).status).to.equal(200);
      expect(received.map(({ url }) => url)).to.deep.equal(['/v1/realtime?model=m']);
      expect(received[0]?.headers.authorization).to.equal(`Bearer ${UPSTREAM_KEY}`);
      expect(secretsIn(received[0]?.rawHeaders.join(' ') ?? '').filter(({ kind }) => kind === 'token')).to.deep.equal(
        [],
      );
    });

    it('is not part of the key of the cache', async () => {
      const target = `/v1/models?x=${scene.token.id}`;
      scene.provider.answer = (_req, res) => {
        res.writeHead(200, { 'Cache-Control': 'max-age=60' }).end('{}');
      };
      expect((await ask(`${target}&key=${scene.secret}`)).status).to.equal(200);
      expect((await ask(target, scene.secret)).header('x-proxy-cache')).to.equal('hit');
      expect(scene.provider.received).to.have.lengthOf(1);
    });

    it('may be in a header too, but no other token may', async () => {
      const target = `/v1/models?key=${scene.secret}`;
      expect((await ask(target, scene.secret)).status).to.equal(200);
      expect((await ask(target, null, { 'X-Goog-Api-Key': scene.secret })).status).to.equal(200);
      for (const fields of [
        { Authorization: `Bearer ${mintSecret()}` },
        { 'X-Goog-Api-Key': mintSecret() },
        { 'X-Goog-Api-Key': 'another-key' },
      ]) {
        expectGooglesRefusal(await ask(target, null, fields), 400, 'malformed_request');
      }
      expect(scene.provider.received).to.have.lengthOf(2);
    });

    it('is refused in any other spelling or place, and twice', async () => {
      const { secret } = scene;
      const percent = `%73${secret.slice(1)}`;
      for (const query of [
        `key=${secret}&key=${secret}`,
        `key=${secret}&key=${mintSecret()}`,
        `key=${secret}&key=AIza-another`,
        `key=${secret}&api_key=x`,
        `Key=${secret}`,
        `k%65y=${secret}`,
        `key=${percent}`,
        `key=${secret}x`,
        `key=%20${secret}`,
        `key=${secret};a=b`,
        `a=b;key=${secret}`,
        `a?key=${secret}`,
        `token=${secret}`,
        `key=${secret.slice(0, -1)}${secret.endsWith('0') ? '1' : '0'}`,
        'key=AIza-a-real-one',
      ]) {
        for (const fields of [{}, WEBSOCKET]) {
          const answer = await ask(`/v1/models?${query}`, null, fields);
          expect(answer.status, query).to.equal(401);
          expect(answer.text).to.include('credential_in_query');
        }
      }
      expectRefusal(await ask(`/v1/key=${secret}`), CREDENTIAL_IN_URL);
      expect(scene.provider.received).to.have.lengthOf(0);
    });

    it('is refused like one in a header if it is unknown or revoked, in the format of Google', async () => {
      await scene.daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`);
      for (const secret of [mintSecret(), scene.secret]) {
        const [inQuery, inHeader] = [
          await ask(`/v1/models?key=${secret}`),
          await ask('/v1/models', null, { 'X-Goog-Api-Key': secret }),
        ];
        expect(inQuery.status).to.equal(401);
        const shown = ({ text }: RawResponse) => text.replace(/"requestId":"\w+"/, '');
        expectGooglesRefusal(inQuery, 401, 'unauthorized');
        expect(shown(inQuery)).to.equal(shown(inHeader));
        expect(inQuery.header('www-authenticate')).to.equal(inHeader.header('www-authenticate'));
      }
    });

    it('is refused on /token/self', async () => {
      expectRefusal(await ask(`/token/self?key=${scene.secret}`), CREDENTIAL_IN_URL);
    });
  });

  it('is refused by default', async () => {
    const scene = await ProxyFixture.open();
    const target = `/v1/models?key=${scene.secret}`;
    expectRefusal(await scene.send(head(`GET ${target}`, null)), CREDENTIAL_IN_URL);
    expect(scene.provider.received).to.have.lengthOf(0);
    await scene.close();
  });
});
