import { expect } from 'chai';
import { canary } from '../support/canaries.js';
import { chunk, type Fields, head, LAST_CHUNK } from '../support/raw.js';
import { expectRefusal, MALFORMED } from '../support/refusals.js';
import { type FieldList, extraRequestHeaders } from './support/extra-headers.js';
import { type FaultFixture, staged } from './support/fault-fixture.js';

/** The headers that the upstream received for a GET with these headers, without those that it always receives. */
async function sent(stage: FaultFixture, fields: Fields): Promise<FieldList> {
  expect((await stage.ask(stage.get(fields))).status).to.equal(200);
  return extraRequestHeaders(stage, await stage.upstream.only());
}

const FINE = ['X-Fine', 'a'] as const;

describe('B: headers of requests to the upstream', () => {
  const { stage, it } = staged();

  const LEFT_OUT: [rows: string, what: string, fields: Fields][] = [
    ['B01', 'hop-by-hop headers', { Connection: 'close, x-secret', 'X-Secret': 'a', 'Keep-Alive': 'timeout=5' }],
    [
      'B01',
      'headers for proxies',
      { 'Proxy-Authorization': 'Basic YTpi', 'Proxy-Connection': 'close', TE: 'trailers', Trailer: 'X-A' },
    ],
    [
      'B01',
      'headers that offer another protocol',
      { Connection: 'upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABk' },
    ],
    [
      'B01',
      'headers named by a second Connection header',
      { Connection: ['keep-alive', 'X-Secret ,x-other,,'], 'X-Secret': 'a', 'x-OTHER': 'b' },
    ],
    [
      'B02',
      "the daemon's own headers when Connection names them",
      { Connection: 'authorization, host, x-request-id, cdn-loop, connection' },
    ],
    ['B02', 'other headers that Connection names', { Connection: 'cache-control', 'Cache-Control': 'no-cache' }],
    ['B04', "the client's Host", { Host: 'evil.example:8080' }],
    [
      'B05',
      "the client's address",
      {
        'X-Forwarded-For': '10.0.0.1',
        'X-Forwarded-Host': 'evil',
        'X-Forwarded-Proto': 'https',
        'X-Forwarded-New': 'a',
      },
    ],
    ['B05', "the client's address in other headers", { Forwarded: 'for=10.0.0.1', 'X-Real-IP': '10.0.0.1' }],
    [
      'B06',
      'other credentials',
      {
        Cookie: 'a=b',
        'X-Api-Key': canary('client'),
        'Api-Key': canary('client'),
        'Proxy-Authorization': 'Basic YTpi',
      },
    ],
    ['B06', 'the organisation and project to bill', { 'OpenAI-Organization': 'org-1', 'OpenAI-Project': 'proj-1' }],
    [
      'B06',
      'the same names with an underscore, which some servers read as the same',
      { X_Api_Key: 'a', OpenAI_Project: 'b', X_Forwarded_For: 'c', __proto__x: 'd' },
    ],
    [
      'B06',
      'the same names in other letter cases',
      { cOOKIE: 'a=b', 'x-API-key': 'a', 'API-KEY': 'b', 'OPENAI-organization': 'c' },
    ],
    ['B06', 'names with a meaning in JavaScript', { ['__proto__']: 'a', constructor: 'b', prototype: 'c' }],
  ];
  for (const [rows, what, fields] of LEFT_OUT) {
    it(`${rows} the upstream does not receive ${what}`, async () => {
      expect(await sent(stage, { 'X-Fine': 'a', ...fields })).to.deep.equal([FINE]);
    });
  }

  it('B01 the upstream does not receive Expect', async () => {
    const client = await stage.client(
      head('POST /v1/echo', stage.secret, { Expect: '100-continue', 'Content-Length': '2' }),
    );
    await client.seen('HTTP/1.1 100 Continue\r\n\r\n');
    client.send('{}');
    await client.seen('{"ok":true}');
    const exchange = await stage.upstream.only();
    expect(extraRequestHeaders(stage, exchange)).to.deep.equal([['content-length', '2']]);
    expect(exchange.request.body.toString()).to.equal('{}');
  });

  const FRAMED: [what: string, bytes: () => string, framing: readonly [string, string]][] = [
    ['its length', () => stage.post('hello', { Connection: 'content-length' }), ['content-length', '5']],
    [
      'its coding',
      () =>
        stage.post(chunk('hello') + LAST_CHUNK, { Connection: 'transfer-encoding', 'Transfer-Encoding': 'chunked' }),
      ['transfer-encoding', 'chunked'],
    ],
  ];
  for (const [what, bytes, framing] of FRAMED) {
    it(`B02 the body stays framed even if Connection names ${what}`, async () => {
      expect((await stage.ask(bytes())).status).to.equal(200);
      const exchange = await stage.upstream.only();
      expect(extraRequestHeaders(stage, exchange)).to.deep.equal([framing]);
      expect(exchange.request.body.toString()).to.equal('hello');
    });
  }

  it('all other headers reach the upstream byte for byte and in order', async () => {
    const fields: Fields = {
      'user-AGENT': 'OpenAI/Python 1.0',
      Accept: 'application/json',
      'OpenAI-Beta': 'assistants=v2',
      'X-Repeated': ['b', 'a', 'b'],
      'X-Latin': 'caf\xe9',
      'X-Empty': '',
      'Idempotency-Key': '1',
      Via: '1.1 theirs',
      Range: 'bytes=0-1',
    };
    const expected = Object.entries(fields).flatMap(([name, values]) => [values].flat().map((value) => [name, value]));
    expect(await sent(stage, fields)).to.deep.equal(expected);
  });

  const ENCODINGS: Fields[] = [
    { 'Accept-Encoding': 'gzip, deflate, br;q=0.5, zstd' },
    { 'accept-encoding': 'IDENTITY;q=1, *;q=0' },
    { 'Accept-Encoding': ['gzip', 'br'] },
    { 'Accept-Encoding': '' },
    {},
  ];
  for (const fields of ENCODINGS) {
    it(`B12 the upstream receives Accept-Encoding unchanged, or none: ${JSON.stringify(fields)}`, async () => {
      const expected = Object.entries(fields).flatMap(([name, values]) =>
        [values].flat().map((value) => [name, value]),
      );
      expect(await sent(stage, fields)).to.deep.equal(expected);
    });
  }

  const IDS: [what: string, ids: string | string[], isKept: boolean][] = [
    ['an ID of 64 characters', 'aZ09_-'.repeat(11).slice(0, 64), true],
    ['an ID of 65 characters', 'a'.repeat(65), false],
    ['4 KB', 'a'.repeat(4096), false],
    ['an ID with a space', 'my id', false],
    ['an ID with non-ASCII characters', 'caf\xe9', false],
    ['an ID with quotes', '"a"', false],
    ['an empty ID', '', false],
    ['two', ['a', 'b'], false],
  ];
  for (const [what, ids, isKept] of IDS) {
    it(`B14 the upstream and the client get the same request ID: the client's, if it has the right form, else a new one: ${what}`, async () => {
      const answer = await stage.ask(stage.get({ 'X-Request-ID': ids }));
      const { requestId } = await stage.upstream.only();
      expect(answer.all('x-request-id')).to.deep.equal([requestId]);
      if (isKept) expect(requestId).to.equal(ids);
      else expect(requestId).to.match(/^[0-9a-f]{32}$/);
      expect(await stage.onlyRecord()).to.include({ requestId });
    });
  }

  for (const [what, id] of Object.entries({
    CR: 'a\rb',
    LF: 'a\nb',
    ESC: 'a\x1b[2Jb',
    NUL: 'a\0b',
    'a new header': 'a\r\nX-Fine: a\rb',
  })) {
    it(`B14 a request ID with a control character is refused: ${what}`, async () => {
      const client = await stage.client(stage.get({ 'X-Request-ID': id }));
      const answer = await client.response();
      expectRefusal(answer, MALFORMED);
      expect(answer.header('x-request-id')).to.match(/^[0-9a-f]{32}$/);
      await stage.expectNothingSpent();
    });
  }

  it('B13 trailers are dropped and not announced', async () => {
    const trailers = 'X-Checksum: a\r\nAuthorization: Bearer x\r\n';
    const body = `${chunk('hello')}0\r\n${trailers}\r\n`;
    const fields = { 'Transfer-Encoding': 'chunked', Trailer: 'X-Checksum', TE: 'trailers', 'X-Fine': 'a' };
    const client = await stage.client(stage.post(body, fields) + stage.get());
    expect((await client.response()).status).to.equal(200);
    expect((await client.response()).status, 'after the trailers').to.equal(200);
    const [exchange] = stage.upstream.exchanges;
    expect(extraRequestHeaders(stage, exchange!)).to.have.deep.members([FINE, ['transfer-encoding', 'chunked']]);
    expect(exchange!.bytes.toString()).to.match(/\r\n\r\n5\r\nhello\r\n0\r\n\r\n$/);
  });
});

describe("B: the project's key", () => {
  const { stage, it } = staged({ env: { UPSTREAM_CONNECTIONS: '1' } });

  it('B07 every upstream request has the key exactly once and never the token, in every way that a request can take', async () => {
    let hasClosed = false;
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      // A retry, redirects to another host and to this one, and interim responses.
      if (exchange.isReused && exchange.method === 'GET' && !hasClosed) {
        hasClosed = true;
        exchange.fin();
      } else if (exchange.method === 'GET') {
        exchange.respond(302, `Location: ${stage.upstream.url}/v1/elsewhere\r\n`);
      } else {
        exchange.send('HTTP/1.1 102 Processing\r\n\r\n');
        exchange.respond(307, 'Location: http://evil.example/v1/echo\r\n');
      }
    };
    const expecting = async () => {
      const client = await stage.client(
        head('POST /v1/echo', stage.secret, { Expect: '100-continue', 'Content-Length': '2' }),
      );
      expect((await client.response()).status).to.equal(100);
      client.send('{}');
      return client.response();
    };
    const inChunks = () => stage.ask(stage.post(chunk('{}') + LAST_CHUNK, { 'Transfer-Encoding': 'chunked' }));
    const small = () => stage.ask(stage.post('{}'));
    const get = () => stage.ask(stage.get());
    // All at the same time, on one connection.
    const answers = await Promise.all([get, expecting, inChunks, small, get, expecting, get].map((ask) => ask()));
    expect(answers.map(({ status }) => status)).to.deep.equal([302, 307, 307, 307, 302, 307, 302]);
    expect(hasClosed).to.equal(true);
    expect(stage.upstream.exchanges).to.have.lengthOf(answers.length + 1);
    for (const exchange of stage.upstream.exchanges) {
      expect(exchange.all('authorization')).to.deep.equal([`Bearer ${stage.upstreamKey}`]);
      expect(exchange.bytes.includes(stage.secret.slice(6, 30))).to.equal(false);
    }
    expect(await stage.uses()).to.equal(answers.length);
  });
});
