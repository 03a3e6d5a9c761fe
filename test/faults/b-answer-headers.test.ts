import { expect } from 'chai';
import { chunk, head, LAST_CHUNK, type RawAnswer } from '../support/raw.js';
import { givenBeside } from './support/fields.js';
import { staged } from './support/stage.js';

const FINE = ['X-Fine', 'a'] as const;

describe('B: the headers to the client', () => {
  const { stage, it } = staged();

  /** The answer to a GET that the upstream answers with these fields and a small body. */
  async function given(...fields: string[]): Promise<RawAnswer> {
    stage.upstream.script = (exchange) => {
      const lines = fields.map((field) => `${field}\r\n`).join('');
      exchange.send(`HTTP/1.1 200 OK\r\n${lines}${/^transfer/im.test(lines) ? '' : 'Content-Length: 2\r\n'}\r\n`);
      exchange.send(/^transfer/im.test(lines) ? chunk('{}') + LAST_CHUNK : '{}');
    };
    const answer = await stage.ask(stage.get());
    expect(answer).to.include({ status: 200, text: '{}' });
    return answer;
  }
  const LENGTH = ['Content-Length', '2'] as const;

  const LEFT_OUT: [rows: string, what: string, fields: string[]][] = [
    ['B03', 'what is meant for this hop', ['Connection: x-int, Keep-Alive', 'X-Int: a', 'Keep-Alive: timeout=99']],
    [
      'B03',
      'what is said by proxies',
      ['Proxy-Authenticate: Basic', 'Proxy-Connection: close', 'TE: a', 'Proxy-Status: a'],
    ],
    ['B03', 'what offers another protocol', ['Upgrade: h2c', 'HTTP2-Settings: AAMAAABk']],
    [
      'B03',
      'what a second Connection names',
      ['Connection: keep-alive', 'connection: X-Int ,,x-other', 'x-int: a', 'X-OTHER: b'],
    ],
    [
      'B03',
      'nothing of ours that Connection names',
      ['Connection: x-proxy-cache, x-request-id, vary, server-timing, date, x-token-expires-at'],
    ],
    ['B09', 'a word on the cache', ['X-PROXY-CACHE: hit', 'x-proxy-cache: hit']],
    [
      'B09',
      'a word on the token',
      ['X-Token-Expires-At: never', 'X-Token-Requests-Remaining: 9', 'X-Upstream-Request-ID: forged'],
    ],
  ];
  for (const [rows, what, fields] of LEFT_OUT) {
    it(`${rows} lack ${what}`, async () => {
      const answer = await given('X-Fine: a', ...fields);
      expect(givenBeside(stage, answer)).to.deep.equal([FINE, LENGTH]);
    });
  }

  /** To a browser the daemon's origin is that of the Admin UI. */
  const ACTS_ON_ORIGIN: Record<string, string[]> = {
    'keep cookies': ['Set-Cookie: llmp_session=a; Path=/', 'SET-COOKIE: b=2', 'Set-Cookie2: c=3'],
    'forget what it keeps': ['Clear-Site-Data: "cookies", "storage"'],
    'use TLS, or certain keys, from now on': [
      'Strict-Transport-Security: max-age=31536000; includeSubDomains; preload',
      'Public-Key-Pins: pin-sha256="a"; max-age=1',
      'Public-Key-Pins-Report-Only: pin-sha256="a"',
      'Expect-CT: max-age=86400, enforce',
    ],
    'ask another server': ['alt-svc: h3="evil.test:443"; ma=86400; persist=1', 'Alternate-Protocol: 443:quic'],
    'go elsewhere': ['Refresh: 0; url=https://evil.test/'],
    'report errors to somebody': [
      'NEL: {"report_to":"a","max_age":86400}',
      'Report-To: {"group":"a","max_age":86400,"endpoints":[{"url":"https://evil.test"}]}',
      'Reporting-Endpoints: a="https://evil.test"',
    ],
    'let a script of the provider serve all pages': ['Service-Worker-Allowed: /'],
    'say more of itself': [
      'Accept-CH: Sec-CH-UA-Model',
      'Critical-CH: Sec-CH-UA-Model',
      'Use-As-Dictionary: match="/*"',
    ],
    'fetch pages in advance': ['Speculation-Rules: "/v1/rules.json"'],
    'believe in a log-in': ['Set-Login: logged-in', 'Secure-Session-Registration: (ES256);path="a"'],
    'be measured by others': ['Timing-Allow-Origin: *'],
  };
  for (const [what, fields] of Object.entries(ACTS_ON_ORIGIN)) {
    it(`B10 lack what would have a browser ${what}, on our origin (finding C8)`, async () => {
      expect(givenBeside(stage, await given('X-Fine: a', ...fields))).to.deep.equal([FINE, LENGTH]);
    });

    it(`B10 lack what would have a browser ${what}, in the answer to a WebSocket's handshake (finding C8)`, async () => {
      const asked = head('GET /v1/realtime', stage.secret, {
        Connection: 'Upgrade',
        Upgrade: 'websocket',
        'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
        'Sec-WebSocket-Version': '13',
      });
      const lines = [...fields, 'X-Fine: a'].map((field) => `${field}\r\n`).join('');
      for (const status of [101, 403]) {
        stage.upstream.script = (exchange) => {
          if (status === 101) exchange.switchProtocols(lines);
          else exchange.answer(status, lines);
        };
        const answer = await stage.ask(asked);
        expect(answer.status).to.equal(status);
        expect(answer.header('x-fine')).to.equal('a');
        for (const field of fields) expect(answer.all(field.split(':')[0] ?? ''), field).to.deep.equal([]);
      }
    });
  }

  it('B10 lack what a server in front of us would take for an order of ours (finding C8)', async () => {
    const orders = ['X-Accel-Redirect: /internal/secrets', 'X-Accel-Limit-Rate: 1', 'X-Sendfile: /etc/passwd'];
    expect(givenBeside(stage, await given('X-Fine: a', ...orders))).to.deep.equal([FINE, LENGTH]);
  });

  it('B03 frame the body, even if Connection names its length', async () => {
    const answer = await given('Connection: content-length');
    expect(givenBeside(stage, answer)).to.deep.equal([['Transfer-Encoding', 'chunked']]);
  });

  it('B08 keep repeated fields apart and in their order', async () => {
    const fields = [
      'X-Repeated: a=1; Path=/',
      'Link: </a>; rel=next',
      'WWW-Authenticate: Basic realm="a, b"',
      'x-repeated: b=2, with a comma',
      'Link: </b>; rel=prev',
      'WWW-Authenticate: Digest nonce="c"',
      'X-Repeated: a=1; Path=/',
    ];
    const expected = fields.map((field) => field.split(/: (.*)/).slice(0, 2));
    expect(givenBeside(stage, await given(...fields))).to.deep.equal([...expected, LENGTH]);
  });

  it('B10 hold what the provider says of itself and of the account', async () => {
    const fields = [
      'Server: cloudflare',
      'Via: 1.1 edge',
      'openai-organization: org-of-the-key',
      'openai-processing-ms: 12',
      'openai-version: 2020-10-01',
      'x-ratelimit-limit-requests: 10000',
      'cf-ray: 8f0-AMS',
      "Content-Security-Policy: default-src 'none'",
      'X-Content-Type-Options: nosniff',
      'Location: https://provider.test/v1/elsewhere',
      'X-Accel-Buffering: no',
      'X-Latin: caf\xe9',
      'X-Empty: ',
    ];
    const expected = fields.map((field) => field.split(/: (.*)/).slice(0, 2));
    expect(givenBeside(stage, await given(...fields))).to.deep.equal([...expected, LENGTH]);
  });

  it('B10 lack what would tell browsers whose pages may read the answer', async () => {
    const answer = await given('Access-Control-Allow-Origin: *', 'access-control-expose-headers: a');
    expect(givenBeside(stage, answer)).to.deep.equal([LENGTH]);
  });

  it("B14 hold the provider's request id under another name", async () => {
    const answer = await given('X-Request-ID: req_theirs');
    expect(givenBeside(stage, answer)).to.deep.equal([LENGTH, ['X-Upstream-Request-ID', 'req_theirs']]);
    expect(await stage.onlyEnd()).to.include({ upstreamRequestId: 'req_theirs' });
  });

  it('B13 do not announce the trailers that are dropped', async () => {
    stage.upstream.script = (exchange) => {
      exchange.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Checksum\r\n\r\n');
      exchange.send(`${chunk('{}')}0\r\nX-Checksum: a\r\nX-PROXY-CACHE: hit\r\n\r\n`);
    };
    const client = await stage.client(stage.get());
    await client.seen(LAST_CHUNK);
    const received = client.pending.toString();
    expect(received).not.to.match(/^trailer|^x-checksum|: hit/im);
    expect(received).to.match(/\r\n\r\n2\r\n\{\}\r\n0\r\n\r\n$/);
    const answer = await client.answer();
    expect(givenBeside(stage, answer)).to.deep.equal([['Transfer-Encoding', 'chunked']]);
    client.send(stage.get());
    await client.seen('HTTP/1.1 200 OK');
  });
});
