import { expect } from 'chai';
import { chunk, LAST_CHUNK, type RawAnswer } from '../support/raw.js';
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

  it('B03 frame the body, even if Connection names its length', async () => {
    const answer = await given('Connection: content-length');
    expect(givenBeside(stage, answer)).to.deep.equal([['Transfer-Encoding', 'chunked']]);
  });

  it('B08 keep repeated fields apart and in their order', async () => {
    const fields = [
      'Set-Cookie: a=1; Path=/',
      'Link: </a>; rel=next',
      'WWW-Authenticate: Basic realm="a, b"',
      'set-cookie: b=2, with a comma',
      'Link: </b>; rel=prev',
      'WWW-Authenticate: Digest nonce="c"',
      'Set-Cookie: a=1; Path=/',
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
      'alt-svc: h3=":443"; ma=86400',
      'Strict-Transport-Security: max-age=1',
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
