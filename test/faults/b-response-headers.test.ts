import { expect } from 'chai';
import { chunk, head, LAST_CHUNK, type RawResponse, WEBSOCKET } from '../support/raw.js';
import { extraResponseHeaders } from './support/extra-headers.js';
import { staged } from './support/fault-fixture.js';

const FINE = ['X-Fine', 'a'] as const;

describe('B: headers of responses to the client', () => {
  const { stage, it } = staged();

  /** The response to a GET, when the upstream responds with these headers and a small body. */
  async function given(...fields: string[]): Promise<RawResponse> {
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
    ['B03', 'hop-by-hop headers', ['Connection: x-int, Keep-Alive', 'X-Int: a', 'Keep-Alive: timeout=99']],
    [
      'B03',
      'headers for and from proxies',
      ['Proxy-Authenticate: Basic', 'Proxy-Connection: close', 'TE: a', 'Proxy-Status: a'],
    ],
    ['B03', 'headers that offer another protocol', ['Upgrade: h2c', 'HTTP2-Settings: AAMAAABk']],
    [
      'B03',
      'headers named by a second Connection header',
      ['Connection: keep-alive', 'connection: X-Int ,,x-other', 'x-int: a', 'X-OTHER: b'],
    ],
    [
      'B03',
      "the daemon's own headers when Connection names them",
      ['Connection: x-proxy-cache, x-request-id, vary, server-timing, date, x-token-expires-at'],
    ],
    [
      'B09',
      'credentials',
      ['Authorization: Bearer other', 'X-Api-Key: a', 'api-key: b', 'x-goog-api-key: c', 'XI-API-KEY: d'],
    ],
    ['B09', "the upstream's headers about a cache", ['X-PROXY-CACHE: hit', 'x-proxy-cache: hit']],
    [
      'B09',
      "the upstream's headers about a token",
      [
        'X-Token-Expires-At: never',
        'X-Token-Requests-Remaining: 9',
        'X-Token-Warning: expires-in=1',
        'X-Upstream-Request-ID: forged',
      ],
    ],
  ];
  for (const [rows, what, fields] of LEFT_OUT) {
    it(`${rows} the client does not receive ${what}`, async () => {
      const answer = await given('X-Fine: a', ...fields);
      expect(extraResponseHeaders(stage, answer)).to.deep.equal([FINE, LENGTH]);
    });
  }

  /** For a browser, the daemon's origin is that of the Admin UI. */
  const ACTS_ON_ORIGIN: Record<string, string[]> = {
    'store cookies': ['Set-Cookie: llmp_session=a; Path=/', 'SET-COOKIE: b=2', 'Set-Cookie2: c=3'],
    'clear its stored data': ['Clear-Site-Data: "cookies", "storage"'],
    'require TLS, or pin keys': [
      'Strict-Transport-Security: max-age=31536000; includeSubDomains; preload',
      'Public-Key-Pins: pin-sha256="a"; max-age=1',
      'Public-Key-Pins-Report-Only: pin-sha256="a"',
      'Expect-CT: max-age=86400, enforce',
    ],
    'use another server': ['alt-svc: h3="evil.test:443"; ma=86400; persist=1', 'Alternate-Protocol: 443:quic'],
    'load another page': ['Refresh: 0; url=https://evil.test/'],
    'send reports elsewhere': [
      'NEL: {"report_to":"a","max_age":86400}',
      'Report-To: {"group":"a","max_age":86400,"endpoints":[{"url":"https://evil.test"}]}',
      'Reporting-Endpoints: a="https://evil.test"',
    ],
    "let the provider's script serve all pages": ['Service-Worker-Allowed: /'],
    'reveal more about itself': [
      'Accept-CH: Sec-CH-UA-Model',
      'Critical-CH: Sec-CH-UA-Model',
      'Use-As-Dictionary: match="/*"',
    ],
    'fetch pages in advance': ['Speculation-Rules: "/v1/rules.json"'],
    'change the login state': ['Set-Login: logged-in', 'Secure-Session-Registration: (ES256);path="a"'],
    'expose timing to other sites': ['Timing-Allow-Origin: *'],
  };
  for (const [what, fields] of Object.entries(ACTS_ON_ORIGIN)) {
    it(`B10 the client does not receive headers that make a browser ${what}, on the daemon's origin`, async () => {
      expect(extraResponseHeaders(stage, await given('X-Fine: a', ...fields))).to.deep.equal([FINE, LENGTH]);
    });

    it(`B10 the client does not receive headers that make a browser ${what}, in the response to a WebSocket handshake`, async () => {
      const asked = head('GET /v1/realtime', stage.secret, WEBSOCKET);
      const lines = [...fields, 'X-Fine: a'].map((field) => `${field}\r\n`).join('');
      for (const status of [101, 403]) {
        stage.upstream.script = (exchange) => {
          if (status === 101) exchange.switchProtocols(lines);
          else exchange.respond(status, lines);
        };
        const answer = await stage.ask(asked);
        expect(answer.status).to.equal(status);
        expect(answer.header('x-fine')).to.equal('a');
        for (const field of fields) expect(answer.all(field.split(':')[0] ?? ''), field).to.deep.equal([]);
      }
    });
  }

  it("B10 the client does not receive headers that a server in front of the daemon would obey as the daemon's", async () => {
    const orders = ['X-Accel-Redirect: /internal/secrets', 'X-Accel-Limit-Rate: 1', 'X-Sendfile: /etc/passwd'];
    expect(extraResponseHeaders(stage, await given('X-Fine: a', ...orders))).to.deep.equal([FINE, LENGTH]);
  });

  it("B09 the project's key is masked wherever the upstream repeats it, also in stored responses", async () => {
    const key = stage.upstreamKey;
    const answer = await given(
      `Location: https://provider.test/v1/files?key=${key}&again=${key}`,
      `X-Echo: Bearer ${key}`,
      `X-Request-ID: for-${key}`,
      `Vary: ${key}`,
      'Cache-Control: max-age=600',
    );
    expect(answer.header('location')).to.equal('https://provider.test/v1/files?key=********&again=********');
    expect(answer.header('x-echo')).to.equal('Bearer ********');
    expect(answer.header('x-upstream-request-id')).to.equal('for-********');
    expect(JSON.stringify(answer.fields)).not.to.include(key);
    const hit = await stage.ask(stage.get());
    expect(JSON.stringify(hit.fields)).not.to.include(key);
  });

  it('B03 the body stays framed even if Connection names its length', async () => {
    const answer = await given('Connection: content-length');
    expect(extraResponseHeaders(stage, answer)).to.deep.equal([['Transfer-Encoding', 'chunked']]);
  });

  it('B08 repeated headers stay separate and in order', async () => {
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
    expect(extraResponseHeaders(stage, await given(...fields))).to.deep.equal([...expected, LENGTH]);
  });

  it("B10 the client receives the provider's headers about itself and the account", async () => {
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
    expect(extraResponseHeaders(stage, await given(...fields))).to.deep.equal([...expected, LENGTH]);
  });

  it('B10 the client does not receive CORS headers of the upstream, which would let web pages read the response', async () => {
    const answer = await given('Access-Control-Allow-Origin: *', 'access-control-expose-headers: a');
    expect(extraResponseHeaders(stage, answer)).to.deep.equal([LENGTH]);
  });

  it("B14 the client receives the provider's request ID under another name", async () => {
    const answer = await given('X-Request-ID: req_theirs');
    expect(extraResponseHeaders(stage, answer)).to.deep.equal([LENGTH, ['X-Upstream-Request-ID', 'req_theirs']]);
    expect(await stage.onlyRecord()).to.include({ upstreamRequestId: 'req_theirs' });
  });

  it('B13 trailers are dropped and not announced', async () => {
    stage.upstream.script = (exchange) => {
      exchange.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Checksum\r\n\r\n');
      exchange.send(`${chunk('{}')}0\r\nX-Checksum: a\r\nX-PROXY-CACHE: hit\r\n\r\n`);
    };
    const client = await stage.client(stage.get());
    await client.seen(LAST_CHUNK);
    const received = client.pending.toString();
    expect(received).not.to.match(/^trailer|^x-checksum|: hit/im);
    expect(received).to.match(/\r\n\r\n2\r\n\{\}\r\n0\r\n\r\n$/);
    const answer = await client.response();
    expect(extraResponseHeaders(stage, answer)).to.deep.equal([['Transfer-Encoding', 'chunked']]);
    client.send(stage.get());
    await client.seen('HTTP/1.1 200 OK');
  });
});
