import { expect } from 'chai';
import { mintSecretOf, SECRET_PREFIXES } from '../../daemon/core/token.js';
import { secretsIn } from '../support/canaries.js';
import { chunk, type Fields, head, WEBSOCKET } from '../support/raw.js';
import { CREDENTIAL_IN_URL, expectRefusal } from '../support/refusals.js';
import { extraRequestHeaders } from './support/extra-headers.js';
import { staged } from './support/fault-fixture.js';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const percent = (text: string) => Buffer.from(text).toString('hex').replace(/../g, '%$&');

/** The ways in which software puts a token into a header or URL. */
const WRITINGS: Record<string, (secret: string) => string> = {
  'as it is': (secret) => secret,
  'after a scheme': (secret) => `Token token="${secret}"`,
  'in the middle of a word': (secret) => `x${secret}y`,
  'with its last character wrong': (secret) => secret.slice(0, -1) + (secret.endsWith('a') ? 'b' : 'a'),
  'with encoded hyphens': (secret) => secret.replaceAll('-', '%2D'),
  'percent-encoded': percent,
  'percent-encoded twice': (secret) => percent(percent(secret)),
  'in base64, as Basic credentials': (secret) => base64(`u:${secret}`),
  'in base64, at the second place': (secret) => base64(`us:${secret}`),
  'in base64, at the third place': (secret) => base64(`use:${secret}`),
  'in base64url without padding': (secret) => Buffer.from(`~~~${secret}~~~`).toString('base64url'),
  'in base64 that is percent-encoded': (secret) => percent(base64(`u:${secret}`)),
};

describe("B: the client's token in a second place", () => {
  const { stage, it } = staged();

  /** Checks everything that was sent to the upstream, in any encoding. */
  const expectNoTokenSent = () => {
    expect(
      secretsIn(Buffer.concat(stage.upstream.received)).filter(({ kind }) => kind in SECRET_PREFIXES),
    ).to.deep.equal([]);
  };

  for (const [what, write] of Object.entries(WRITINGS)) {
    it(`B06 the token is not forwarded in any header: ${what}`, async () => {
      const written = write(stage.secret);
      const other = write((await stage.issue()).token);
      const fields: Fields = {
        'X-Fine': ['a', written, 'b', other, write(mintSecretOf('operator')), write(mintSecretOf('session'))],
        'User-Agent': written,
        'Cache-Control': `no-cache, ${written}`,
        'CDN-Loop': written,
        Referer: `https://example.test/?token=${written}`,
        Baggage: `a=b,key=${written}`,
        'X-Request-ID': written,
      };
      expect((await stage.ask(stage.get(fields))).status).to.equal(200);
      expect(extraRequestHeaders(stage, await stage.upstream.only())).to.deep.equal([
        ['X-Fine', 'a'],
        ['X-Fine', 'b'],
      ]);
      expectNoTokenSent();
      expect(await stage.uses()).to.equal(1);
    });

    it(`B06 the token is not forwarded in a header of a WebSocket handshake: ${what}`, async () => {
      stage.upstream.script = (exchange) => {
        exchange.switchProtocols();
      };
      const written = write(stage.secret);
      const client = await stage.client(
        head('GET /v1/realtime', stage.secret, {
          ...WEBSOCKET,
          'X-Fine': [written, 'a'],
          'Sec-WebSocket-Extensions': `permessage-deflate; x="${written}"`,
          'Sec-WebSocket-Protocol': `realtime, ${/^[\w%-]+$/.test(written) ? written : stage.secret}`,
        }),
      );
      expect((await client.response()).status).to.equal(101);
      const exchange = await stage.upstream.only();
      expect(exchange.all('x-fine')).to.deep.equal(['a']);
      expect(exchange.all('sec-websocket-extensions')).to.deep.equal([]);
      expect(exchange.all('sec-websocket-protocol')).to.deep.equal(['realtime']);
      expectNoTokenSent();
    });

    if (/ |"/.test(write('sk-wt-'))) continue;
    it(`B06 the token in the target: the request is refused, not counted, and the token is not recorded: ${what}`, async () => {
      const written = write(stage.secret);
      const targets = [
        `/v1/models?a=${written}`,
        `/v1/models?${written}`,
        `/v1/models?a=b&x${percent(written)}=c`,
        ...(what.includes('twice') ? [] : [`/v1/models/${written.replaceAll('/', '%2F')}/x`]),
      ];
      for (const target of targets) {
        const asked = [
          stage.get({}, target),
          head(`GET ${target}`, null),
          head(`GET ${target}`, stage.secret, WEBSOCKET),
        ];
        for (const bytes of asked) expectRefusal(await stage.ask(bytes), CREDENTIAL_IN_URL);
      }
      await stage.expectNothingSpent();
      for (const { path, code } of stage.daemon.ended) {
        expect(code).to.equal('credential_in_query');
        expect(path).to.match(/^\/v1\/models(?:$|\/x?\*{8})/);
      }
      expect(secretsIn(JSON.stringify(stage.daemon.ended) + stage.daemon.logged.join(''))).to.deep.equal([]);
    });
  }

  it('B06 the token is not forwarded in the name of a header', async () => {
    expect((await stage.ask(stage.get({ [stage.secret]: 'a', [`X-${stage.secret}`]: 'b' }))).status).to.equal(200);
    expect(extraRequestHeaders(stage, await stage.upstream.only())).to.deep.equal([]);
  });

  it('B06 B13 the token is not forwarded in a trailer', async () => {
    const body = `${chunk('{}')}0\r\nX-Checksum: ${stage.secret}\r\n\r\n`;
    const answer = await stage.ask(stage.post(body, { 'Transfer-Encoding': 'chunked', Trailer: 'X-Checksum' }));
    expect(answer.status).to.equal(200);
    expectNoTokenSent();
  });

  it('B06 other values with the length of a token are forwarded', async () => {
    const fields: Fields = {
      'X-Shown': stage.token.token.slice(0, 10).padEnd(80, '*'),
      'X-Key': `sk-proj-${'a'.repeat(60)}`,
      'X-Encoded': base64('this is not a token, although it is long enough for one'.repeat(3)),
      'X-Percent': percent('this is not a token, although it is long enough for one'),
      'X-Broken': `%zz${'%'.repeat(80)}`,
      'X-Prefixes': 'sk-wt-'.repeat(40),
    };
    expect((await stage.ask(stage.get(fields))).status).to.equal(200);
    expect(extraRequestHeaders(stage, await stage.upstream.only())).to.deep.equal(Object.entries(fields));
  });
});

describe('B: another kind of credential', () => {
  const { stage, it } = staged();

  // Those that a client may send its token in are in test/http/proxy/carriers.test.ts.
  const FIELDS = ['Ocp-Apim-Subscription-Key', 'X-Auth-Token', 'Cookie', 'Proxy-Authorization'];
  for (const name of FIELDS) {
    it(`B06 the credential ${name} is never forwarded, whatever its value`, async () => {
      expect((await stage.ask(stage.get({ [name]: ['anything', stage.secret] }))).status).to.equal(200);
      expect(extraRequestHeaders(stage, await stage.upstream.only())).to.deep.equal([]);
    });
  }

  const QUERIES = [
    'key=a',
    'a=b&key=c',
    'KEY=a',
    'a;key=b',
    'api_key=a',
    'api-key=a',
    'apikey=a',
    'apiKey=a',
    'access_token=a',
    'subscription-key=a',
    'x-goog-api-key=a',
    '%6bey=a',
    '%256bey=a',
    'key=%20',
  ];
  for (const query of QUERIES) {
    it(`B06 a credential in the query gets 401, even with a valid token in the header: ?${query}`, async () => {
      const target = `/v1/models?${query}`;
      expectRefusal(await stage.ask(stage.get({}, target)), CREDENTIAL_IN_URL);
      expectRefusal(await stage.ask(head(`GET ${target}`, stage.secret, WEBSOCKET)), CREDENTIAL_IN_URL);
      await stage.expectNothingSpent();
    });
  }

  for (const query of ['key=', 'key', 'keys=a', 'a=key', 'order=key=a', 'page_token=a', 'cachekey=b']) {
    it(`B06 a query without a credential is not refused: ?${query}`, async () => {
      expect((await stage.ask(stage.get({}, `/v1/models?${query}`))).status).to.equal(200);
      expect((await stage.upstream.only()).target).to.equal(`/v1/models?${query}`);
    });
  }
});
