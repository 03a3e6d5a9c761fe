import { VARY_BY_CARRIER } from '../../daemon/http/request-head.js';
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { Authority } from '../support/certificates.js';
import { TestClock } from '../support/clock.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { seededRandom } from '../support/model.js';
import { frameOf } from '../support/frames.js';
import { eventually } from '../support/eventually.js';
import { makeDatabaseUnreachable } from '../support/database-outage.js';
import { trustTestNames } from '../support/network-overrides.js';
import { chunk, type Fields, head, LAST_CHUNK, type RawResponse, type RawClient, WEBSOCKET } from '../support/raw.js';
import {
  type Expected,
  expectRefusal,
  HEADERS_TOO_LARGE,
  KEY_REJECTED,
  LIMIT_REACHED,
  LOOP_DETECTED,
  MALFORMED,
  PROJECT_INACTIVE,
  UNAUTHORIZED,
  UNREACHABLE,
  UPSTREAM_MALFORMED,
  UPSTREAM_TIMEOUT,
  URI_TOO_LONG,
} from '../support/refusals.js';
import { staged } from './support/fault-fixture.js';
import type { Exchange, Script } from './support/upstream.js';

const SECOND_MS = 1000;
// Bytes that are not text, which a tunnel must not change.
const BYTES = Buffer.from(Array.from({ length: 1024 }, (_, i) => i % 256));

/** A message of a client, which asks for nothing. */
const said = (text: string | Buffer) => frameOf(text, { opcode: 2, isMasked: true });
const SAID = said(BYTES);
const EARLY = said('early');

const H2C: Fields = {
  Connection: 'Upgrade, HTTP2-Settings',
  Upgrade: 'h2c',
  'HTTP2-Settings': 'AAMAAABkAAQCAAAAAAIAAAAA',
};
describe('upgrades that are not made', () => {
  const { stage, it } = staged();

  const NOT_TAKEN: Record<string, { start: string; fields: Fields; body?: string }> = {
    'to h2c': { start: 'GET /v1/models', fields: H2C },
    'to h2c, by POST': { start: 'POST /v1/echo', fields: { ...H2C, 'Content-Length': '5' }, body: 'hello' },
    'to an unknown protocol': { start: 'GET /v1/models', fields: { Connection: 'upgrade', Upgrade: 'foo/1' } },
    'to TLS': { start: 'OPTIONS /v1/models', fields: { Connection: 'upgrade', Upgrade: 'TLS/1.0' } },
    'to a WebSocket, by POST': { start: 'POST /v1/echo', fields: { ...WEBSOCKET, 'Content-Length': '2' }, body: '{}' },
    'to a WebSocket, by POST without a body': { start: 'POST /v1/echo', fields: WEBSOCKET },
    'to a WebSocket with an unsupported expectation': {
      start: 'GET /v1/models',
      fields: { ...WEBSOCKET, Expect: '100-continue' },
    },
    'to a WebSocket, with a body': {
      start: 'GET /v1/models',
      fields: { ...WEBSOCKET, 'Content-Length': '2' },
      body: '{}',
    },
  };
  for (const [what, { start, fields, body = '' }] of Object.entries(NOT_TAKEN)) {
    it(`A30 a request for an upgrade ${what} is served without it, and Upgrade is not forwarded`, async () => {
      const answer = await stage.ask(head(start, stage.secret, fields) + body);
      expect(answer.status).to.equal(start.startsWith('OPTIONS') ? 204 : 200);
      expect(answer.header('upgrade')).to.equal(undefined);
      for (const exchange of stage.upstream.exchanges) {
        for (const name of ['upgrade', 'connection', 'http2-settings', 'sec-websocket-key', 'sec-websocket-version']) {
          expect(exchange.all(name).join(), name).to.match(/^(?:keep-alive|close)?$/);
        }
        expect(exchange.request.body.toString()).to.equal(body);
      }
      expect(await stage.uses()).to.equal(stage.upstream.exchanges.length);
    });
  }

  it('A30 an upgrade in HTTP/1.0, which has none, is not made', async () => {
    const answer = await stage.ask(head('GET /v1/models', stage.secret, WEBSOCKET).replace('HTTP/1.1', 'HTTP/1.0'));
    expect(answer.status).to.equal(200);
    expect((await stage.upstream.only()).all('upgrade')).to.deep.equal([]);
  });

  it('A30 the body of a request whose upgrade is not made arrives whole, however it is framed', async () => {
    const fields = { ...H2C, 'Transfer-Encoding': 'chunked' };
    const client = await stage.client(head('POST /v1/echo', stage.secret, fields) + chunk('first '));
    const exchange = await stage.upstream.only();
    client.send(chunk('second ') + chunk('third'));
    client.send(LAST_CHUNK);
    expect((await client.response()).status).to.equal(200);
    expect(exchange.request.body.toString()).to.equal('first second third');
  });

  it('A30 bytes in one packet with an upgrade that is not made are not lost', async () => {
    const upgrade = head('POST /v1/echo', stage.secret, { ...H2C, 'Content-Length': '5' });
    const client = await stage.client(`${upgrade}hello${stage.get({}, '/v1/second')}${stage.get({}, '/v1/third')}`);
    for (let i = 0; i < 3; i++) expect((await client.response()).status).to.equal(200);
    expect(stage.upstream.exchanges.map(({ target }) => target)).to.have.members([
      '/v1/echo',
      '/v1/second',
      '/v1/third',
    ]);
  });

  it('A30 bytes after an upgrade that is not made are parsed as a request, or refused', async () => {
    const client = await stage.client(head('GET /v1/models', stage.secret, H2C));
    expect((await client.response()).status).to.equal(200);
    client.send('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    expect((await client.response()).status).to.be.oneOf([400, 505]);
    await client.closed;
    expect(stage.upstream.exchanges).to.have.lengthOf(1);
  });

  it('A30 a client that waits for 100 Continue gets it when its upgrade is not made', async () => {
    const fields = { ...H2C, Expect: '100-continue', 'Content-Length': '5' };
    const client = await stage.client(head('POST /v1/echo', stage.secret, fields));
    expect((await client.response()).status).to.equal(100);
    client.send('hello');
    expect((await client.response()).status).to.equal(200);
  });

  it('A30 an upgrade without a token is refused like any request, and the connection stays open', async () => {
    const client = await stage.client(head('GET /v1/models', null, H2C));
    expectRefusal(await client.response(), UNAUTHORIZED);
    client.send(stage.get());
    expect((await client.response()).status).to.equal(200);
  });

  for (const upgrade of [H2C, WEBSOCKET]) {
    const { Upgrade: protocol } = upgrade;
    it(`A30 outside of /v1 an upgrade to ${String(protocol)} is not made`, async () => {
      expect((await stage.ask(head('GET /live', null, upgrade))).status).to.equal(200);
      expect((await stage.ask(head('GET /manage/projects', MANAGEMENT_TOKEN, upgrade))).status).to.equal(200);
      expect((await stage.ask(head('GET /v1x', stage.secret, upgrade))).status).to.equal(404);
      await stage.expectNothingSpent();
    });

    it(`A30 an upgrade to ${String(protocol)} that is pipelined after an unanswered request closes the connection`, async () => {
      stage.upstream.script = () => undefined;
      const client = await stage.client(stage.get());
      const exchange = await stage.upstream.only();
      client.send(stage.get(upgrade, '/v1/second'));
      await client.closed;
      await exchange.closed();
      expect(await stage.onlyRecord()).to.include({ outcome: 'client_closed' });
      expect(stage.upstream.exchanges).to.have.lengthOf(1);
    });
  }
});

describe('WebSocket upgrades on the wire', () => {
  const { stage, it } = staged({
    env: { REQUEST_TIMEOUT: '60s', WEBSOCKET_IDLE_TIMEOUT: '120s', UPSTREAM_CONNECT_TIMEOUT: '5s' },
  });

  const handshake = (fields: Fields = {}, start = 'GET /v1/realtime') =>
    head(start, stage.secret, { ...WEBSOCKET, ...fields });
  const agree: Script = (exchange) => {
    exchange.switchProtocols();
  };
  const silent: Script = () => undefined;

  /** A client and an upstream after the handshake. */
  async function joined(
    script: Script = agree,
  ): Promise<{ client: RawClient; exchange: Exchange; answer: RawResponse }> {
    stage.upstream.script = script;
    const client = await stage.client(handshake());
    const answer = await client.response();
    expect(answer.status).to.equal(101);
    return { client, exchange: await stage.upstream.only(), answer };
  }

  /** A client whose handshake is at the upstream, which does not respond. */
  async function waiting(early = Buffer.alloc(0)): Promise<{ client: RawClient; exchange: Exchange }> {
    stage.upstream.script = silent;
    const client = await stage.client(Buffer.concat([Buffer.from(handshake()), early]));
    return { client, exchange: await stage.upstream.only() };
  }

  describe('the handshake', () => {
    it('A30 a WebSocket is admitted and tunnelled: bytes pass both ways unchanged, and it costs one use', async () => {
      const { client, exchange } = await joined();
      client.send(SAID);
      await eventually('they are at the upstream', () => exchange.tunnelled.equals(SAID));
      exchange.send(BYTES);
      await eventually('they are at the client', () => client.pending.equals(BYTES));
      expect(await stage.uses()).to.equal(1);
      client.destroy();
      expect(await stage.onlyRecord()).to.include({ status: 101, path: '/v1/realtime', method: 'GET' });
    });

    it('A30 bytes that arrive together with the handshake, or with its response, are not lost', async () => {
      stage.upstream.script = (exchange) => {
        exchange.switchProtocols();
        exchange.send('with the answer');
      };
      const [early, later] = [said('with the handshake'), said(', and later')];
      const client = await stage.client(Buffer.concat([Buffer.from(handshake()), early]));
      expect((await client.response()).status).to.equal(101);
      await client.seen('with the answer');
      const exchange = await stage.upstream.only();
      await eventually('the early bytes', () => exchange.tunnelled.equals(early));
      client.send(later);
      await eventually('the later ones', () => exchange.tunnelled.equals(Buffer.concat([early, later])));
    });

    it('bytes that the client sends before the response are held, in order', async () => {
      const messages = ['one', 'two', 'three'].map(said);
      const { client, exchange } = await waiting(messages[0]);
      for (const message of messages.slice(1)) client.send(message);
      exchange.switchProtocols();
      expect((await client.response()).status).to.equal(101);
      await eventually('all of it', () => exchange.tunnelled.equals(Buffer.concat(messages)));
    });

    it('a client that sends more than 64 KiB before the response is refused', async () => {
      const { client, exchange } = await waiting();
      client.send('x'.repeat(65 * 1024));
      expectRefusal(await client.response(), MALFORMED);
      await exchange.closed();
      await client.closed;
    });

    it('path and query are forwarded byte for byte', async () => {
      stage.upstream.script = agree;
      const target = '/v1/realtime/http:/a%2Fb;c?model=gpt//x?y&z=\'"<>{}|';
      const client = await stage.client(handshake({}, `GET ${target}`));
      expect((await client.response()).status).to.equal(101);
      expect((await stage.upstream.only()).target).to.equal(target);
    });

    it('B01 B02 hop-by-hop headers of a handshake, and those named in Connection, are not forwarded', async () => {
      stage.upstream.script = agree;
      const named = 'Upgrade, x-secret, authorization, host, upgrade, sec-websocket-key';
      const client = await stage.client(
        handshake({
          Connection: named,
          'X-Secret': 'a',
          'Keep-Alive': 'timeout=5',
          TE: 'trailers',
          Trailer: 'X-A',
          'Proxy-Connection': 'keep-alive',
          'Proxy-Authorization': 'Basic x',
          'X-Kept': ['one', 'two'],
        }),
      );
      expect((await client.response()).status).to.equal(101);
      const exchange = await stage.upstream.only();
      for (const name of ['x-secret', 'keep-alive', 'te', 'trailer', 'proxy-connection', 'proxy-authorization']) {
        expect(exchange.all(name), name).to.deep.equal([]);
      }
      expect(exchange.all('connection')).to.deep.equal(['Upgrade']);
      expect(exchange.all('upgrade')).to.deep.equal(['websocket']);
      expect(exchange.all('sec-websocket-key')).to.deep.equal(['dGhlIHNhbXBsZSBub25jZQ==']);
      expect(exchange.all('host')).to.deep.equal([new URL(stage.upstream.url).host]);
      expect(exchange.all('x-kept')).to.deep.equal(['one', 'two']);
    });

    it("B04 B05 B06 the client's headers about hosts, addresses and billing are not forwarded", async () => {
      stage.upstream.script = agree;
      const fields = {
        Host: 'evil.example',
        Origin: 'https://evil.example',
        Cookie: 'a=b',
        'X-Api-Key': 'k',
        'Api-Key': 'k',
        'OpenAI-Organization': 'org',
        'OpenAI-Project': 'proj',
        Forwarded: 'for=1.2.3.4',
        'X-Forwarded-For': '1.2.3.4',
        'X-Real-IP': '1.2.3.4',
        X_Forwarded_For: '1.2.3.4',
        'Sec-WebSocket-Protocol': 'realtime, openai-organization.org, openai-project.proj, OpenAI-Insecure-API-Key.k',
      };
      const client = await stage.client(handshake(fields));
      expect((await client.response()).status).to.equal(101);
      const exchange = await stage.upstream.only();
      const rebuilt = ['Host', 'Sec-WebSocket-Protocol'];
      for (const name of Object.keys(fields).filter((it) => !rebuilt.includes(it))) {
        expect(exchange.all(name), name).to.deep.equal([]);
      }
      expect(exchange.all('host')).to.deep.equal([new URL(stage.upstream.url).host]);
      expect(exchange.all('sec-websocket-protocol')).to.deep.equal(['realtime']);
    });

    it('B03 B08 B09 the 101 is rebuilt: no hop-by-hop headers, our own headers once, the others unchanged', async () => {
      const { answer, client } = await joined((exchange) => {
        exchange.switchProtocols(
          [
            'X-PROXY-CACHE: hit',
            'X-Request-ID: of-the-upstream',
            'X-Token-Expires-At: never',
            'X-Repeated: a=1',
            'X-Repeated: b=2',
            'Keep-Alive: timeout=5',
            'Proxy-Authenticate: Basic',
            'Content-Length: 3',
            'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=',
            'Sec-WebSocket-Protocol: realtime',
            'X-Latin: caf\xe9',
            'X-Utf: caf\xc3\xa9',
            '',
          ].join('\r\n'),
        );
      });
      expect(answer.all('x-proxy-cache')).to.deep.equal(['miss']);
      expect(answer.header('x-upstream-request-id')).to.equal('of-the-upstream');
      expect(answer.header('x-request-id')).to.match(/^[0-9a-f]{32}$/);
      expect(Date.parse(answer.header('x-token-expires-at') ?? '')).to.be.greaterThan(Date.now());
      expect(answer.header('server-timing')).to.match(/^upstream;dur=[\d.]+, proxy;dur=[\d.]+$/);
      expect(answer.header('vary')).to.equal(VARY_BY_CARRIER);
      expect(answer.all('x-repeated')).to.deep.equal(['a=1', 'b=2']);
      expect(answer.header('connection')).to.equal('Upgrade');
      expect(answer.header('upgrade')).to.equal('websocket');
      expect(answer.header('sec-websocket-accept')).to.equal('s3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
      expect(answer.header('sec-websocket-protocol')).to.equal('realtime');
      expect(answer.header('x-latin')).to.equal('caf\xe9');
      expect(answer.header('x-utf')).to.equal('caf\xc3\xa9');
      for (const name of ['keep-alive', 'proxy-authenticate', 'content-length']) {
        expect(answer.all(name), name).to.deep.equal([]);
      }
      client.destroy();
      expect(await stage.onlyRecord()).to.include({ upstreamRequestId: 'of-the-upstream' });
    });

    it('B11 a handshake that returns to the daemon is refused, and each is marked with Via', async () => {
      const { exchange } = await joined();
      const [mark = ''] = exchange.all('cdn-loop');
      expectRefusal(await stage.ask(handshake({ 'CDN-Loop': `other, ${mark}` })), LOOP_DETECTED);
      expect(stage.upstream.exchanges).to.have.lengthOf(1);
      expect(await stage.uses()).to.equal(1);
    });

    it('C32 a key that the upstream returns with its 101 is in no record', async () => {
      stage.upstreamEchoesSecrets = true;
      const { client } = await joined((exchange) => {
        exchange.switchProtocols(`X-Request-ID: ${exchange.all('authorization').join()}\r\n`);
      });
      client.destroy();
      expect((await stage.onlyRecord()).upstreamRequestId).to.equal('Bearer ********');
    });

    it("B14 the client's request ID is used on both sides if it is harmless", async () => {
      for (const [given, isUsed] of [
        ['my-id', true],
        ['not harmless', false],
        ['x'.repeat(65), false],
      ] as const) {
        stage.upstream.script = agree;
        const client = await stage.client(handshake({ 'X-Request-ID': given }));
        const id = (await client.response()).header('x-request-id') ?? '';
        expect(id === given).to.equal(isUsed);
        await eventually('it has arrived', () => stage.upstream.exchanges.some(({ requestId }) => requestId === id));
      }
    });
  });

  describe('the credential among the subprotocols', () => {
    const offering = (...names: string[]) =>
      head('GET /v1/realtime', null, { ...WEBSOCKET, 'Sec-WebSocket-Protocol': names.join(', ') });

    it('it is accepted if there is no Authorization, and never forwarded', async () => {
      stage.upstream.script = agree;
      const client = await stage.client(
        offering('realtime', `openai-insecure-api-key.${stage.secret}`, 'openai-beta.realtime-v1'),
      );
      expect((await client.response()).status).to.equal(101);
      const exchange = await stage.upstream.only();
      expect(exchange.all('sec-websocket-protocol')).to.deep.equal(['realtime, openai-beta.realtime-v1']);
      expect(await stage.uses()).to.equal(1);
    });

    it('if it is the only subprotocol, no empty list is forwarded', async () => {
      stage.upstream.script = agree;
      const client = await stage.client(offering(`openai-insecure-api-key.${stage.secret}`));
      expect((await client.response()).status).to.equal(101);
      expect((await stage.upstream.only()).all('sec-websocket-protocol')).to.deep.equal([]);
    });

    it('it is used beside an Authorization that has no token, and refused beside another token', async () => {
      stage.upstream.script = agree;
      const protocols = `openai-insecure-api-key.${stage.secret}`;
      const beside = (authorization: string) =>
        head('GET /v1/realtime', null, {
          ...WEBSOCKET,
          'Sec-WebSocket-Protocol': protocols,
          Authorization: authorization,
        });
      for (const authorization of ['Bearer sk-wt-bad', 'Basic abc', '']) {
        const client = await stage.client(beside(authorization));
        expect((await client.response()).status, authorization).to.equal(101);
        client.destroy();
      }
      expect(await stage.uses()).to.equal(3);
      const answer = await stage.ask(beside(`Bearer ${(await stage.issue()).token}`));
      expect(answer.status).to.equal(400);
      expect(await stage.uses()).to.equal(3);
    });

    it('it is refused if there are two, or if it is not a valid token', async () => {
      const other = await stage.issue();
      for (const names of [[stage.secret, other.token], [stage.secret, stage.secret], ['sk-upstream'], ['']]) {
        const request = offering('realtime', ...names.map((name) => `openai-insecure-api-key.${name}`));
        expectRefusal(await stage.ask(request), UNAUTHORIZED);
      }
      await stage.expectNothingSpent();
    });

    it('it is not forwarded with a request that is not an upgrade either', async () => {
      const protocols = `realtime, openai-insecure-api-key.${stage.secret}`;
      expect((await stage.ask(stage.get({ 'Sec-WebSocket-Protocol': protocols }))).status).to.equal(200);
      expect((await stage.upstream.only()).all('sec-websocket-protocol')).to.deep.equal([]);
    });
  });

  describe('refusals before anything is spent', () => {
    const MALFORMED_ONES: [what: string, request: () => string, expected: Expected][] = [
      ['two credentials', () => handshake({ Authorization: ['Bearer a', 'Bearer b'] }), MALFORMED],
      ['no Host', () => handshake({ Host: [] }), MALFORMED],
      ['two Hosts', () => handshake({ Host: ['a', 'b'] }), MALFORMED],
      ['a target that is not normalised', () => handshake({}, 'GET /v1/../manage'), MALFORMED],
      ['a long target', () => handshake({}, `GET /v1/${'x'.repeat(9000)}`), URI_TOO_LONG],
      [
        '101 fields',
        () => handshake(Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`X-${i}`, '']))),
        HEADERS_TOO_LARGE,
      ],
      ['no token', () => head('GET /v1/realtime', null, WEBSOCKET), UNAUTHORIZED],
      ['an unknown token', () => head('GET /v1/realtime', `sk-wt-${'a'.repeat(49)}`, WEBSOCKET), UNAUTHORIZED],
    ];
    for (const [what, request, expected] of MALFORMED_ONES) {
      it(`a handshake with ${what} gets ${expected.status}, and the connection closes`, async () => {
        const client = await stage.client(request());
        const answer = await client.response();
        expectRefusal(answer, expected);
        expect(answer.header('connection')).to.equal('close');
        if (expected.status === 401) expect(answer.header('www-authenticate')).to.match(/^Bearer/);
        await client.closed;
        expect(await stage.onlyRecord()).to.include({
          status: expected.status,
          code: expected.code,
          outcome: 'refused',
        });
        await stage.expectNothingSpent();
      });
    }

    it('a handshake with a revoked token gets 401, in an inactive project 403', async () => {
      const setProject = (isActive: boolean) =>
        stage.daemon.manage('PATCH', `/manage/projects/${stage.project.id}`, { is_active: isActive });
      await setProject(false);
      expectRefusal(await stage.ask(handshake()), PROJECT_INACTIVE);
      await setProject(true);
      await stage.daemon.manage('DELETE', `/manage/tokens/${stage.token.id}`);
      expectRefusal(await stage.ask(handshake()), UNAUTHORIZED);
      await stage.expectNothingSpent();
    });

    it('an exhausted token gets 429; a connection counts as one use, whatever is sent on it', async () => {
      stage.token = await stage.issue({ max_requests: 2 });
      stage.upstream.script = agree;
      for (const left of ['1', '0']) {
        const client = await stage.client(handshake());
        expect((await client.response()).header('x-token-requests-remaining')).to.equal(left);
        for (let i = 0; i < 20; i++) client.send(said('more'));
      }
      const refused = await stage.ask(handshake());
      expectRefusal(refused, LIMIT_REACHED);
      expect(refused.header('retry-after')).to.equal(undefined);
      expect(await stage.uses()).to.equal(2);
    });
  });

  describe('an upstream that refuses the handshake', () => {
    const passing: [id: string, status: number, fields: string][] = [
      ['C30', 426, 'Sec-WebSocket-Version: 13\r\n'],
      ['C29', 429, 'Retry-After: 7\r\n'],
      ['C26', 302, 'Location: https://elsewhere.example/\r\n'],
      ['C30', 503, ''],
      ['B08', 200, 'X-Repeated: a=1\r\nX-Repeated: b=2\r\n'],
    ];
    for (const [id, status, fields] of passing) {
      it(`${id} a refusal with ${status} is forwarded like any response, and the connection closes`, async () => {
        stage.upstream.script = (exchange) => {
          const length = 'Content-Length: 15\r\nX-PROXY-CACHE: hit\r\n';
          exchange.send(`HTTP/1.1 ${status} Wh\x80t\r\n${length}${fields}\r\n{"error":"no" }`);
        };
        const client = await stage.client(handshake());
        const answer = await client.response();
        expect(answer.status).to.equal(status);
        expect(answer.text).to.equal('{"error":"no" }');
        expect(answer.all('x-proxy-cache')).to.deep.equal(['miss']);
        expect(answer.header('connection')).to.equal('close');
        for (const line of fields.split('\r\n').filter(Boolean)) {
          const [name = '', value] = line.split(': ');
          expect(answer.all(name)).to.include(value);
        }
        await client.closed;
        const outcome = status >= 500 ? 'upstream_error' : status >= 400 ? 'upstream_refused' : 'ok';
        expect(await stage.onlyRecord()).to.include({ status, outcome });
        expect(await stage.uses()).to.equal(1);
      });
    }

    it('a body is forwarded as it arrives, and is complete only if it was complete', async () => {
      stage.upstream.script = (exchange) => {
        exchange.send(`HTTP/1.1 400 No\r\nTransfer-Encoding: chunked\r\n\r\n${chunk('first')}`);
      };
      const client = await stage.client(handshake());
      await client.seen('first');
      const exchange = await stage.upstream.only();
      exchange.send(chunk(', second') + LAST_CHUNK);
      expect((await client.response()).text).to.equal('first, second');
    });

    for (const [how, fields, end] of [
      ['C03 a refusal that ends within its stated length', 'Content-Length: 100', 'fin'],
      ['C04 a refusal that ends within chunks', 'Transfer-Encoding: chunked', 'fin'],
      ['C05 a refusal that ends with a reset', 'Content-Length: 100', 'rst'],
    ] as const) {
      it(`${how}: the client's connection is destroyed`, async () => {
        stage.upstream.script = (exchange) => {
          exchange.send(`HTTP/1.1 400 No\r\n${fields}\r\n\r\n${fields.startsWith('T') ? chunk('half') : 'half'}`);
        };
        const client = await stage.client(handshake());
        await client.seen('half');
        (await stage.upstream.only())[end]();
        await client.closed;
        expect(await client.response().catch(() => 'not complete')).to.equal('not complete');
        expect(await stage.onlyRecord()).to.include({ status: 400, outcome: 'truncated' });
      });
    }

    it("C28 a 401 to the project's key becomes 502, without its text", async () => {
      stage.upstreamEchoesSecrets = false;
      stage.upstream.script = (exchange) => {
        exchange.respond(401, '', `Incorrect API key provided: ${exchange.all('authorization').join()}`);
      };
      expectRefusal(await stage.ask(handshake()), KEY_REJECTED);
      expect(await stage.onlyRecord()).to.include({ outcome: 'upstream_error', status: 502 });
    });

    it('C02 no response: 504 at REQUEST_TIMEOUT, and the upstream connection is closed', async () => {
      const { client, exchange } = await waiting();
      stage.daemon.clock.advance(60 * SECOND_MS - 100);
      expect(stage.daemon.ended, 'not yet').to.be.empty;
      stage.daemon.clock.advance(100);
      expectRefusal(await client.response(), UPSTREAM_TIMEOUT);
      await exchange.closed();
      expect(await stage.onlyRecord()).to.include({ outcome: 'timeout', status: 504 });
      expect(await stage.uses(), 'the use stays counted').to.equal(1);
    });

    it('C23 silence within a response: the client is cut off', async () => {
      stage.upstream.script = (exchange) => {
        exchange.send('HTTP/1.1 400 No\r\nContent-Length: 100\r\n\r\nhalf');
      };
      const client = await stage.client(handshake());
      await client.seen('half');
      stage.daemon.clock.advance(60 * SECOND_MS);
      await client.closed;
      expect(await stage.onlyRecord()).to.include({ outcome: 'timeout', status: 400 });
    });

    const fin: Script = (exchange) => {
      exchange.fin();
    };
    const rst: Script = (exchange) => {
      exchange.rst();
    };
    const sending =
      (bytes: string): Script =>
      (exchange) => {
        exchange.send(bytes);
      };
    const FAULTS: [what: string, script: Script, expected: Expected][] = [
      ['C06 the upstream closes without a response', fin, UNREACHABLE],
      ['C06 the upstream resets the connection', rst, UNREACHABLE],
      ['C10 the upstream does not speak HTTP', sending('SSH-2.0-OpenSSH\r\n\r\n'), UPSTREAM_MALFORMED],
      [
        'C10 the upstream sends two lengths',
        sending('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'),
        UPSTREAM_MALFORMED,
      ],
      ['C10 says 999', sending('HTTP/1.1 099 No\r\nContent-Length: 0\r\n\r\n'), UPSTREAM_MALFORMED],
      [
        'C10 the upstream sends more than 64 KiB of headers',
        sending(`HTTP/1.1 200 OK\r\nX-A: ${'b'.repeat(65 * 1024)}\r\n\r\n`),
        UPSTREAM_MALFORMED,
      ],
      [
        'C12 the upstream switches to another protocol',
        (exchange) => {
          exchange.switchProtocols('', 'h2c');
        },
        UPSTREAM_MALFORMED,
      ],
      [
        'C12 the upstream switches without naming a protocol',
        sending('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n'),
        UPSTREAM_MALFORMED,
      ],
    ];
    for (const [what, script, expected] of FAULTS) {
      it(`${what}: 502 ${expected.code}`, async () => {
        stage.upstream.script = script;
        const client = await stage.client(handshake());
        expectRefusal(await client.response(), expected);
        await client.closed;
        await (await stage.upstream.only()).closed();
        expect(await stage.onlyRecord()).to.include({ outcome: 'upstream_error', status: 502 });
      });
    }

    it('up to 64 KiB of headers are forwarded', async () => {
      const { answer } = await joined((exchange) => {
        exchange.switchProtocols(`X-A: ${'b'.repeat(60 * 1024)}\r\n`);
      });
      expect(answer.header('x-a')).to.have.lengthOf(60 * 1024);
    });

    for (const [what, more] of [
      ['another response', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo'],
      ['a 101 after all', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nbytes'],
      ['bytes', '\0\x01\x02'],
    ] as const) {
      it(`C09 bytes after its response are not delivered: ${what}`, async () => {
        stage.upstream.script = (exchange) => {
          exchange.send(`HTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\none${more}`);
        };
        const client = await stage.client(handshake());
        const answer = await client.response();
        expect({ status: answer.status, text: answer.text }).to.deep.equal({ status: 403, text: 'one' });
        await client.closed;
        expect(client.pending.toString()).to.equal('');
        await (await stage.upstream.only()).closed();
        expect(await stage.onlyRecord()).to.include({ status: 403, outcome: 'upstream_refused' });
      });
    }

    it('C13 102 and 103 before the 101 are dropped', async () => {
      const { answer } = await joined((exchange) => {
        exchange.send('HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n');
        exchange.switchProtocols();
      });
      expect(answer.all('link')).to.deep.equal([]);
    });
  });

  describe('a client that disconnects', () => {
    const WAYS = {
      'closes the connection': (client: RawClient) => client.socket.end(),
      'resets the connection': (client: RawClient) => client.socket.resetAndDestroy(),
    };
    for (const [how, leave] of Object.entries(WAYS)) {
      for (const early of ['', 'with bytes sent early']) {
        it(`D01 a client ${how} before the 101 ${early}: the upstream connection is closed at once`, async () => {
          const tookMs: number[] = [];
          for (let round = 1; round <= 20; round++) {
            stage.upstream.script = silent;
            const client = await stage.client(handshake());
            await eventually('it is at the upstream', () => stage.upstream.exchanges.length === round);
            client.send(early);
            const { socket } = stage.upstream.exchanges.at(-1)!;
            const closed = once(socket, 'close');
            const leftAtMs = performance.now();
            leave(client);
            await closed;
            tookMs.push(performance.now() - leftAtMs);
          }
          await eventually('all have ended', () => stage.daemon.ended.length === tookMs.length);
          for (const ended of stage.daemon.ended) expect(ended).to.include({ outcome: 'client_closed', status: 499 });
          // The bound is for the 99th percentile. On a busy machine the median shows the same.
          expect(tookMs.sort((a, b) => a - b)[10]).to.be.below(50);
        });
      }

      it(`D02 a client ${how} after the 101: the upstream connection is closed, and nothing more is read from it`, async () => {
        let pumped = Promise.resolve();
        const { client, exchange } = await joined((it) => {
          it.switchProtocols();
          pumped = it.pump(1e9);
        });
        leave(client);
        client.destroy();
        await exchange.closed();
        await pumped;
        expect(exchange.sentBytes, 'of a billion').to.be.below(100e6);
        expect(await stage.onlyRecord()).to.include({ status: 101 });
      });
    }
  });

  it('D04 a client that disconnects while the database is asked spends nothing, and leaves nothing open', async () => {
    stage.daemon.clock.advance(60 * SECOND_MS); // A minute later, known tokens are read from the database again.
    let proceed: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      proceed = resolve;
    });
    const slow = makeDatabaseUnreachable(stage.daemon, (reach) => gate.then(reach));
    try {
      const client = await stage.client(handshake());
      await eventually('the database is asked', () => slow.attempts > 0);
      client.destroy();
      expect(await stage.onlyRecord()).to.include({ outcome: 'client_closed', status: 499 });
    } finally {
      slow.end();
      proceed();
    }
    await stage.inFlight(0);
    await stage.expectNothingSpent();
  });

  describe('a half-closed connection', () => {
    /** Keeps its own half open when the other side closes. @returns a promise for that moment. */
    const staysOpen = ({ socket }: Exchange) => once(socket.removeAllListeners('end'), 'end');

    it('what the other side still sends is forwarded: the client closes first', async () => {
      const { client, exchange } = await joined();
      const ended = staysOpen(exchange);
      client.send(said('goodbye'));
      client.socket.end();
      await ended;
      expect(exchange.tunnelled.equals(said('goodbye'))).to.equal(true);
      exchange.send('goodbye to you');
      await client.seen('goodbye to you');
      exchange.fin();
      await client.closed;
      expect(await stage.onlyRecord()).to.include({ status: 101, outcome: 'ok' });
    });

    it('what the other side still sends is forwarded: the upstream closes first', async () => {
      const { client, exchange } = await joined();
      exchange.send(BYTES);
      exchange.fin();
      await client.closed;
      expect(client.pending.equals(BYTES)).to.equal(true);
      await exchange.closed();
      expect(await stage.onlyRecord()).to.include({ status: 101, outcome: 'ok' });
    });

    it('it is closed after a while if the upstream does not close its side', async () => {
      const { client, exchange } = await joined();
      const ended = staysOpen(exchange);
      client.socket.end();
      await ended;
      stage.daemon.clock.advance(9 * SECOND_MS);
      expect(stage.daemon.ended, 'not yet').to.be.empty;
      stage.daemon.clock.advance(SECOND_MS);
      await client.closed;
      expect(await stage.onlyRecord()).to.include({ status: 101, outcome: 'ok' });
      exchange.fin();
    });

    it('it is cut, not closed, when the upstream resets it', async () => {
      const { client, exchange } = await joined();
      exchange.rst();
      await client.closed;
      expect(await stage.onlyRecord()).to.include({ status: 101, outcome: 'truncated' });
    });
  });

  it('nothing is left open, whichever side closes when and how', async () => {
    const ROUNDS = 300;
    const random = seededRandom(ROUNDS);
    const pick = <T>(...choices: T[]): T => choices[Math.floor(random() * choices.length)]!;
    /** Lets other events happen in between, or not. */
    const dawdle = async (mostTurns: number) => {
      for (let turns = Math.floor(random() * mostTurns); turns > 0; turns--) await turn();
    };
    stage.upstream.script = async (exchange) => {
      const acts: (() => unknown)[] = [
        () => {
          exchange.switchProtocols();
        },
        () => {
          exchange.respond(pick(200, 401, 426, 503));
        },
        () => exchange.send(BYTES),
        () => {
          exchange.fin();
        },
        () => {
          exchange.rst();
        },
      ];
      for (const act of [pick(...acts), pick(...acts), pick(...acts)]) {
        await dawdle(10);
        if (!exchange.isFinished && !exchange.isClosed) act();
      }
      await dawdle(10);
      exchange.socket.destroy();
    };
    for (let round = 1; round <= ROUNDS; round++) {
      const client = await stage.client(Buffer.concat([Buffer.from(handshake()), pick(Buffer.alloc(0), EARLY)]));
      const acts: (() => unknown)[] = [
        () => {
          client.send(SAID);
        },
        () => client.socket.end(),
        () => client.socket.resetAndDestroy(),
        () => {
          client.destroy();
        },
        () => (round % 50 === 0 ? stage.daemon.manage('DELETE', `/manage/tokens/${stage.token.id}`) : null),
      ];
      for (const act of [pick(...acts), pick(...acts)]) {
        await dawdle(50);
        await act();
      }
      client.destroy();
      if (round % 50 === 0) stage.token = await stage.issue();
    }
    await eventually('all have ended', () => stage.daemon.ended.length >= ROUNDS);
    expect(new Set(stage.daemon.ended.map(({ outcome }) => outcome)).size, 'ways to end').to.be.greaterThan(1);
  });
});

describe('a WebSocket that its upstream has closed', () => {
  // The clock stands still: nothing ends because of a timeout.
  const { stage, it } = staged({ clock: new TestClock({ standsStill: true }) });

  async function ended(): Promise<{ client: RawClient; exchange: Exchange }> {
    stage.upstream.script = (exchange) => {
      exchange.switchProtocols();
      exchange.send(BYTES);
    };
    const client = await stage.client(head('GET /v1/realtime', stage.secret, WEBSOCKET));
    expect((await client.response()).status).to.equal(101);
    const exchange = await stage.upstream.only();
    client.socket.allowHalfOpen = true;
    client.socket.removeAllListeners('end');
    const heard = once(client.socket, 'end');
    exchange.fin();
    await heard;
    expect(client.pending.equals(BYTES)).to.equal(true);
    return { client, exchange };
  }

  it('ends as soon as the client closes it too, and what the client still sends is dropped', async () => {
    const { client } = await ended();
    client.send(SAID);
    expect(stage.daemon.ended).to.be.empty;
    client.socket.end();
    expect(await stage.onlyRecord()).to.include({ status: 101, outcome: 'ok' });
  });

  it('ends after a while if the client does not close it', async () => {
    await ended();
    expect(stage.daemon.ended).to.be.empty;
    stage.daemon.clock.advance(2 * SECOND_MS);
    expect(await stage.onlyRecord()).to.include({ status: 101, outcome: 'ok' });
  });
});

describe('WebSocket upgrades to an upstream', () => {
  const name = 'provider.test';
  const authority = new Authority();
  trustTestNames(authority.certificate);

  describe('with TLS and a path in its base URL', () => {
    const upstreamUrl = (url: string) => `${url.replace('127.0.0.1', name)}/of/the/provider/`;
    const { stage, it } = staged({ certificate: authority.issue({ name }), upstreamUrl });

    it('reach it by its name and under its path', async () => {
      stage.upstream.script = (exchange) => {
        exchange.switchProtocols();
        exchange.send(BYTES);
      };
      const handshake = Buffer.from(head('GET /v1/realtime?a=b', stage.secret, WEBSOCKET));
      const client = await stage.client(Buffer.concat([handshake, EARLY]));
      expect((await client.response()).status).to.equal(101);
      const exchange = await stage.upstream.only();
      expect(exchange.target).to.equal('/of/the/provider/v1/realtime?a=b');
      expect(exchange.all('host')).to.deep.equal([new URL(upstreamUrl(stage.upstream.url)).host]);
      await eventually('bytes both ways', () => client.pending.equals(BYTES) && exchange.tunnelled.equals(EARLY));
    });
  });

  for (const [what, certificate] of Object.entries({
    'has an untrusted issuer': new Authority('A stranger').issue({ name }),
    'is for another host': authority.issue({ name: 'other.test' }),
  })) {
    describe(`whose certificate ${what}`, () => {
      const { stage, it } = staged({ certificate, upstreamUrl: (url) => url.replace('127.0.0.1', name) });

      it('C34 a handshake gets 502 for an invalid certificate, whatever the environment says of certificates', async () => {
        process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
        try {
          expectRefusal(await stage.ask(head('GET /v1/realtime', stage.secret, WEBSOCKET)), UNREACHABLE);
        } finally {
          delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
        }
        expect(stage.upstream.exchanges).to.be.empty;
      });
    });
  }
});
