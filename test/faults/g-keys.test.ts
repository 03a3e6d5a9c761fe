/**
 * Which requests share a response: the key is the project, the upstream key, method, target and body to the byte, and a closed table of
 * headers.
 */
import { expect } from 'chai';
import { KEYED_FIELDS, cacheKeyOf } from '../../daemon/core/cache/caching.js';
import { type Fields, head, type RawResponse } from '../support/raw.js';
import { staged } from './support/fault-fixture.js';
import { valuesOf } from './support/wire.js';

const OPTED_IN: Fields = { 'Cache-Control': 'public' };

describe('G: the key of the cache', () => {
  const { stage, it } = staged({ env: { HTTP_CACHE_ENABLED: 'true' } });

  const cacheOf = (answer: RawResponse) => answer.header('x-proxy-cache');
  const get = (target: string, fields: Fields = {}, secret = stage.secret) =>
    stage.ask(head(`GET ${target}`, secret, fields));
  const post = (target: string, body: string, fields: Fields = {}) => stage.ask(stage.post(body, fields, target));
  /** Each response contains the number of responses before it. */
  const answerInTurn = (fields = 'Cache-Control: max-age=600\r\n') => {
    let answered = 0;
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      exchange.respond(200, fields, String(++answered));
    };
  };
  /** Sends each request twice, first all, then all again: requests that share a response get the same number. */
  const served = async (asks: readonly (() => Promise<RawResponse>)[]) => {
    const first = [];
    for (const ask of asks) first.push((await ask()).text);
    const second = [];
    for (const ask of asks) {
      const answer = await ask();
      second.push(answer.text);
      expect(cacheOf(answer), 'requested again').to.equal('hit');
    }
    expect(second, 'requested again').to.deep.equal(first);
    return first.map(Number);
  };
  const inTurn = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

  describe('two projects', () => {
    it("G01 a project never gets another project's response to an equal request: fresh, stale or in flight", async () => {
      const other = await stage.daemon.createProject();
      const { token: theirs } = await stage.issue({ project_id: other.id });
      answerInTurn('Cache-Control: max-age=600\r\nETag: "v"\r\n');
      const ask = (secret: string) => () => get('/v1/shared', {}, secret);
      expect(await served([ask(stage.secret), ask(theirs)])).to.deep.equal([1, 2]);
      stage.daemon.clock.advance(700_000);
      expect(await served([ask(stage.secret), ask(theirs)])).to.deep.equal([3, 4]);
      const together = await Promise.all([stage.secret, theirs].map((secret) => get('/v1/together', {}, secret)));
      expect(together.map(cacheOf)).to.deep.equal(['miss', 'miss']);
      expect(together.map(({ text }) => text).sort()).to.deep.equal(['5', '6']);
    });

    it('G01 a change in one project does not affect entries of the other', async () => {
      const other = await stage.daemon.createProject();
      const { token: theirs } = await stage.issue({ project_id: other.id });
      answerInTurn();
      await get('/v1/files/f');
      await get('/v1/files/f', {}, theirs);
      await stage.ask(head('DELETE /v1/files/f', stage.secret));
      expect(cacheOf(await get('/v1/files/f', {}, theirs))).to.equal('hit');
      expect(cacheOf(await get('/v1/files/f'))).to.equal('miss');
    });
  });

  it('G02 tokens of one project share its responses; each hit counts for the token that got it', async () => {
    const other = await stage.issue();
    answerInTurn();
    await get('/v1/shared');
    const hit = await get('/v1/shared', {}, other.token);
    expect([cacheOf(hit), hit.text]).to.deep.equal(['hit', '1']);
    expect((await stage.daemon.token(other.id)).cache_hit_count).to.equal(1);
    expect(await stage.uses(other)).to.equal(0);
    expect(await stage.uses()).to.equal(1);
  });

  describe('a response with Vary', () => {
    it('G09 a response that varies by a keyed header, such as Accept-Encoding, is served only to the same value of it', async () => {
      answerInTurn('Cache-Control: max-age=600\r\nVary: Accept-Encoding, ACCEPT\r\n');
      const variants: Fields[] = [
        {},
        { 'Accept-Encoding': 'gzip' },
        { 'Accept-Encoding': 'br' },
        { Accept: 'text/plain' },
      ];
      expect(await served(variants.map((fields) => () => get('/v1/v', fields)))).to.deep.equal(inTurn(4));
    });

    it('G09 a response that varies by another header is served only to the same value of it, and not to requests without it', async () => {
      answerInTurn('Cache-Control: max-age=600\r\nVary: X-One\r\nVary: x-two\r\n');
      const variants: Fields[] = [
        {},
        { 'X-One': '' },
        { 'X-One': 'a' },
        { 'X-One': 'A' },
        { 'X-Two': 'a' },
        { 'X-One': 'a', 'X-Two': 'a' },
        { 'X-One': ['a', 'b'] },
        { 'X-One': '-' },
        { 'X-One': '1:a' },
      ];
      expect(await served(variants.map((fields) => () => get('/v1/v', fields)))).to.deep.equal(inTurn(variants.length));
      expect((await get('/v1/v', { 'X-One': 'a, b' })).text, 'two fields are one list').to.equal('7');
      expect((await get('/v1/v', { 'X-Three': 'other' })).text, 'another field').to.equal('1');
    });

    it('G09 a response that varies by other headers than the previous one is a separate variant', async () => {
      answerInTurn('Cache-Control: max-age=60\r\nVary: X-One\r\n');
      await get('/v1/v', { 'X-One': 'a', 'X-Two': 'a' });
      stage.upstream.script = (exchange) => {
        exchange.respond(200, 'Cache-Control: max-age=60\r\nVary: X-Two\r\n', `two ${exchange.all('x-two').join()}`);
      };
      expect((await get('/v1/v', { 'X-One': 'b', 'X-Two': 'b' })).text).to.equal('two b');
      expect((await get('/v1/v', { 'X-One': 'a', 'X-Two': 'c' })).text).to.equal('two c');
      expect(cacheOf(await get('/v1/v', { 'X-One': 'c', 'X-Two': 'c' }))).to.equal('hit');
    });

    for (const vary of ['*', 'Accept, *', 'X-One,*', 'X-Request-ID', 'CDN-Loop']) {
      it(`G09 a response with Vary: ${vary} is not stored`, async () => {
        answerInTurn(`Cache-Control: max-age=600\r\nVary: ${vary}\r\n`);
        await get('/v1/v');
        expect(cacheOf(await get('/v1/v'))).to.equal('miss');
      });
    }

    it('G09 a header that is never forwarded does not make variants, even if Vary names it', async () => {
      answerInTurn('Cache-Control: max-age=600\r\nVary: Cookie, X-Forwarded-For, Authorization, Host\r\n');
      await get('/v1/v', { Cookie: 'a=1', 'X-Forwarded-For': '192.0.2.1', Host: 'one.test' });
      const other = await stage.issue();
      const hit = await get('/v1/v', { Cookie: 'a=2', 'X-Forwarded-For': '192.0.2.2', Host: 'two.test' }, other.token);
      expect(cacheOf(hit)).to.equal('hit');
    });
  });

  describe('each header, varied one at a time', () => {
    // Those that a client of such an API sends, or an attacker would.
    const FORWARDED: Record<string, string> = {
      Accept: 'application/json',
      'Accept-Charset': 'utf-8',
      'Accept-Encoding': 'gzip',
      'Accept-Language': 'de',
      'Anthropic-Beta': 'context-1m',
      'Anthropic-Version': '2023-06-01',
      'Content-Language': 'de',
      'Content-Type': 'application/json',
      DNT: '1',
      From: 'a@example.test',
      'Idempotency-Key': 'k',
      Link: '</a>',
      'Max-Forwards': '1',
      'OpenAI-Beta': 'assistants=v2',
      Origin: 'https://example.test',
      Pragma: 'x',
      Prefer: 'wait=10',
      Priority: 'u=1',
      Referer: 'https://example.test/',
      'Save-Data': 'on',
      'Sec-Fetch-Mode': 'cors',
      'True-Client-IP': '192.0.2.1',
      'User-Agent': 'one/1.0',
      Via: '1.1 one',
      'X-Amz-Date': 'x',
      'X-HTTP-Method-Override': 'DELETE',
      'X-Host': 'evil.test',
      'X-Original-URL': '/v1/other',
      'X-Rewrite-URL': '/v1/other',
      'X-Stainless-Lang': 'js',
      'X-Whatever': '1',
    };

    for (const [name, value] of Object.entries(FORWARDED)) {
      const isKeyed = KEYED_FIELDS.includes(name.toLowerCase());
      it(`G17 ${name}: ${isKeyed ? 'two values get two responses' : 'two values get the same response'}`, async () => {
        answerInTurn();
        const variants: Fields[] = [{}, { [name]: value }, { [name]: `${value}x` }];
        const numbers = await served(variants.map((fields) => () => get('/v1/f', fields)));
        expect(numbers).to.deep.equal(isKeyed ? [1, 2, 3] : [1, 1, 1]);
        const [asked] = stage.upstream.exchanges.filter((it) => it.all(name).length > 0);
        if (isKeyed) expect(asked?.all(name)).to.deep.equal([value]);
      });

      it(`G17 ${name}: two values get two responses if Vary names it`, async () => {
        answerInTurn(`Cache-Control: max-age=600\r\nVary: ${name}\r\n`);
        const variants: Fields[] = [{}, { [name]: value }, { [name]: `${value}x` }];
        expect(await served(variants.map((fields) => () => get('/v1/f', fields)))).to.deep.equal([1, 2, 3]);
      });
    }

    it('G17 the table of keyed headers is the documented one', () => {
      const documented = ['accept', 'accept-encoding', 'accept-language', 'content-type', 'openai-beta'];
      documented.push('anthropic-version', 'anthropic-beta');
      expect(KEYED_FIELDS).to.deep.equal(documented);
      return Promise.resolve();
    });

    it("G17 the request that fills the cache has its own client's headers, and the stored response contains none of the unkeyed ones", async () => {
      stage.upstream.script = (exchange) => {
        // Some upstreams repeat headers of the request that are outside of the key.
        exchange.respond(
          200,
          'Cache-Control: max-age=600\r\nX-Upstream-Saw: it\r\n',
          valuesOf(exchange.request, 'x-forwarded-host').join(),
        );
      };
      await get('/v1/f', { 'X-Forwarded-Host': 'evil.test' });
      expect((await get('/v1/f')).text, 'a header that is not forwarded cannot be repeated').to.equal('');
    });
  });

  describe('similar requests', () => {
    const alike: Record<string, readonly string[]> = {
      'the case of the path': ['/v1/a', '/v1/A'],
      escapes: ['/v1/A', '/v1/%41', '/v1/%2541'],
      'the case of escapes': ['/v1/a%2fb', '/v1/a%2Fb', '/v1/a/b'],
      'repeated parameters': ['/v1/a?a=1', '/v1/a?a=1&a=2', '/v1/a?a=2&a=1', '/v1/a?a=2'],
      'parameters separated by semicolons': ['/v1/a?a=1;b=2', '/v1/a?a=1&b=2', '/v1/a?a=1'],
      'the order of parameters': ['/v1/a?a=1&b=2', '/v1/a?b=2&a=1'],
      'an empty query': ['/v1/a', '/v1/a?', '/v1/a??', '/v1/a?&'],
      'a trailing slash': ['/v1/a', '/v1/a/'],
      'plus and space': ['/v1/a?q=a+b', '/v1/a?q=a%20b'],
      'a target that contains another method and target': ['/v1/a', '/v1/a?GET%20/v1/a', '/v1/a?%0A/v1/a'],
    };
    for (const [what, targets] of Object.entries(alike)) {
      it(`G18 every byte of the target counts: ${what}`, async () => {
        answerInTurn();
        expect(await served(targets.map((target) => () => get(target)))).to.deep.equal(inTurn(targets.length));
        const asked = stage.upstream.exchanges.map(({ target }) => target);
        expect(asked, 'the key is what was forwarded').to.deep.equal(targets);
      });
    }

    it('G18 headers that name another target or method change neither the request nor the response', async () => {
      answerInTurn();
      const poisons: Fields[] = [
        { 'X-Forwarded-Host': 'evil.test' },
        { 'X-Forwarded-Proto': 'http' },
        { 'X-Original-URL': '/v1/other' },
        { 'X-Rewrite-URL': '/v1/other' },
        { 'X-HTTP-Method-Override': 'POST' },
        { 'X-HTTP-Method': 'DELETE' },
        { Host: 'evil.test' },
        { Forwarded: 'host=evil.test' },
      ];
      for (const [index, fields] of poisons.entries()) {
        await get(`/v1/p${index}`, fields);
        const { method, target, request } = stage.upstream.exchanges[index]!;
        expect([method, target, ...valuesOf(request, 'host')]).to.deep.equal([
          'GET',
          `/v1/p${index}`,
          stage.upstreamHost,
        ]);
        expect(cacheOf(await get(`/v1/p${index}`))).to.equal('hit');
      }
    });

    it('G18 a GET with a body is forwarded with it; it is neither served from the cache nor stored', async () => {
      answerInTurn();
      const fat = (body: string) =>
        stage.ask(head('GET /v1/fat', stage.secret, { 'Content-Length': String(body.length) }) + body);
      expect(cacheOf(await fat('{"poison":1}'))).to.equal('miss');
      expect([(await get('/v1/fat')).text, cacheOf(await get('/v1/fat'))]).to.deep.equal(['2', 'hit']);
      const again = await fat('{"poison":1}');
      expect([cacheOf(again), again.text]).to.deep.equal(['miss', '3']);
      expect((await get('/v1/fat')).text).to.equal('2');
      expect(stage.upstream.exchanges[2]?.request.body.toString()).to.equal('{"poison":1}');
    });

    it('G18 a GET with a chunked body is neither served from the cache nor stored', async () => {
      answerInTurn();
      const fat = head('GET /v1/fat', stage.secret, { 'Transfer-Encoding': 'chunked' });
      await stage.ask(`${fat}1\r\nx\r\n0\r\n\r\n`);
      expect(cacheOf(await get('/v1/fat'))).to.equal('miss');
    });

    it('G18 methods do not share entries: a stored POST is not served to a GET, nor the reverse', async () => {
      answerInTurn();
      await post('/v1/m', '{}', OPTED_IN);
      expect(cacheOf(await get('/v1/m'))).to.equal('miss');
      expect((await post('/v1/m', '{}', OPTED_IN)).text).to.equal('1');
    });
  });

  describe('the parts of a key', () => {
    // A purge also removes the entries of the former key (g-purge.test.ts). This holds if the purge fails.
    it('G30 after a change of the upstream key, old entries are not found', () => {
      const facts = {
        projectId: 'p',
        method: 'GET',
        target: '/v1/k',
        bodyDigest: '',
        fields: new Map<string, string>(),
      };
      const [one, other] = ['one', 'other'].map((upstreamDigest) => cacheKeyOf({ ...facts, upstreamDigest }));
      expect(one?.variant).not.to.equal(other?.variant);
      return Promise.resolve();
    });

    it('G19 one part of a key cannot contain another: no two requests collide', async () => {
      answerInTurn();
      // The separators and lengths in keys, wherever a client can put them.
      const asks = [
        ...['5:de', '-', '-1:a', '1:a', '1:a-', '0:', '|', 'GET /v1/k', '1:a1:b'].flatMap((value) =>
          ['Accept', 'Accept-Language', 'OpenAI-Beta'].map((name) => () => get('/v1/k', { [name]: value })),
        ),
        () => get('/v1/k'),
        () => get('/v1/k', { Accept: 'a', 'Accept-Encoding': 'b' }),
        () => get('/v1/k', { Accept: 'ab' }),
        () => get('/v1/k', { Accept: '', 'Accept-Encoding': 'ab' }),
        () => get('/v1/k', { Accept: 'a1:b' }),
        () => get('/v1/k?1:a'),
        () => get('/v1/k|1:a'),
        () => get('/v1/k--'),
      ];
      const numbers = await served(asks);
      expect(new Set(numbers).size).to.equal(asks.length);
    });

    it('G19 a value of a header in Vary cannot pass for another header or for none', async () => {
      answerInTurn('Cache-Control: max-age=600\r\nVary: X-A, X-B\r\n');
      const variants: Fields[] = [
        { 'X-A': '1', 'X-B': '2' },
        { 'X-A': '1:13:x-b1:2' },
        { 'X-A': '13:x-b1:2' },
        { 'X-B': '1' },
        { 'X-A': '-' },
        { 'X-A': '-', 'X-B': '-' },
        { 'X-A': '1, 2' },
        {},
      ];
      expect(await served(variants.map((fields) => () => get('/v1/k', fields)))).to.deep.equal(inTurn(variants.length));
    });

    it('G19 bodies that differ only in where they end are different', async () => {
      answerInTurn();
      const asks = ['a', 'a\n', 'ab', '', ' '].map((body) => () => post('/v1/k', body, OPTED_IN));
      expect(await served(asks)).to.deep.equal(inTurn(5));
    });
  });
});
