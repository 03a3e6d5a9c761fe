/** Which requests share an answer: the key is project, upstream key, method, target and body to the byte, and a closed table of fields. */
import { expect } from 'chai';
import { KEYED_FIELDS, placeOf } from '../../daemon/core/cache/caching.js';
import { type Fields, head, type RawAnswer } from '../support/raw.js';
import { staged } from './support/stage.js';
import { valuesOf } from './support/wire.js';

const OPTED_IN: Fields = { 'Cache-Control': 'public' };

describe('G: the key of the cache', () => {
  const { stage, it } = staged({ env: { HTTP_CACHE_ENABLED: 'true' } });

  const cacheOf = (answer: RawAnswer) => answer.header('x-proxy-cache');
  const get = (target: string, fields: Fields = {}, secret = stage.secret) =>
    stage.ask(head(`GET ${target}`, secret, fields));
  const post = (target: string, body: string, fields: Fields = {}) => stage.ask(stage.post(body, fields, target));
  /** Each answer says how many there were before it. */
  const answerInTurn = (fields = 'Cache-Control: max-age=600\r\n') => {
    let answered = 0;
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      exchange.answer(200, fields, String(++answered));
    };
  };
  /** Asks each twice, all of them first: those that share an answer get the same number. */
  const served = async (asks: readonly (() => Promise<RawAnswer>)[]) => {
    const first = [];
    for (const ask of asks) first.push((await ask()).text);
    const second = [];
    for (const ask of asks) {
      const answer = await ask();
      second.push(answer.text);
      expect(cacheOf(answer), 'asked again').to.equal('hit');
    }
    expect(second, 'asked again').to.deep.equal(first);
    return first.map(Number);
  };
  const inTurn = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

  describe('two projects', () => {
    it('G01 never see an answer of each other, though all else is the same: fresh, stale, or on its way', async () => {
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

    it('G01 nor does what one changes touch what the other has', async () => {
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

  it('G02 tokens of one project share its answers, which is the rule; each hit counts for the token that got it', async () => {
    const other = await stage.issue();
    answerInTurn();
    await get('/v1/shared');
    const hit = await get('/v1/shared', {}, other.token);
    expect([cacheOf(hit), hit.text]).to.deep.equal(['hit', '1']);
    expect((await stage.daemon.token(other.id)).cache_hit_count).to.equal(1);
    expect(await stage.uses(other)).to.equal(0);
    expect(await stage.uses()).to.equal(1);
  });

  describe('an answer that varies', () => {
    it('G09 by Accept-Encoding, Accept or another keyed field is given to no other value of it', async () => {
      answerInTurn('Cache-Control: max-age=600\r\nVary: Accept-Encoding, ACCEPT\r\n');
      const variants: Fields[] = [
        {},
        { 'Accept-Encoding': 'gzip' },
        { 'Accept-Encoding': 'br' },
        { Accept: 'text/plain' },
      ];
      expect(await served(variants.map((fields) => () => get('/v1/v', fields)))).to.deep.equal(inTurn(4));
    });

    it('G09 by a field of its own choice is given to no other value of that, nor to a request without it', async () => {
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

    it('G09 by other fields than the answer before it takes nothing of that for its own', async () => {
      answerInTurn('Cache-Control: max-age=60\r\nVary: X-One\r\n');
      await get('/v1/v', { 'X-One': 'a', 'X-Two': 'a' });
      stage.upstream.script = (exchange) => {
        exchange.answer(200, 'Cache-Control: max-age=60\r\nVary: X-Two\r\n', `two ${exchange.all('x-two').join()}`);
      };
      expect((await get('/v1/v', { 'X-One': 'b', 'X-Two': 'b' })).text).to.equal('two b');
      expect((await get('/v1/v', { 'X-One': 'a', 'X-Two': 'c' })).text).to.equal('two c');
      expect(cacheOf(await get('/v1/v', { 'X-One': 'c', 'X-Two': 'c' }))).to.equal('hit');
    });

    for (const vary of ['*', 'Accept, *', 'X-One,*', 'X-Request-ID', 'CDN-Loop']) {
      it(`G09 by ${vary} is not kept: no other request is like it`, async () => {
        answerInTurn(`Cache-Control: max-age=600\r\nVary: ${vary}\r\n`);
        await get('/v1/v');
        expect(cacheOf(await get('/v1/v'))).to.equal('miss');
      });
    }

    it('G09 by what the upstream is never sent is the same for all', async () => {
      answerInTurn('Cache-Control: max-age=600\r\nVary: Cookie, X-Forwarded-For, Authorization, Host\r\n');
      await get('/v1/v', { Cookie: 'a=1', 'X-Forwarded-For': '192.0.2.1', Host: 'one.test' });
      const other = await stage.issue();
      const hit = await get('/v1/v', { Cookie: 'a=2', 'X-Forwarded-For': '192.0.2.2', Host: 'two.test' }, other.token);
      expect(cacheOf(hit)).to.equal('hit');
    });
  });

  describe('each header field, varied one at a time', () => {
    // Those that a client of such an API sends, or an attacker would.
    const FORWARDED: Record<string, string> = {
      Accept: 'application/json',
      'Accept-Charset': 'utf-8',
      'Accept-Encoding': 'gzip',
      'Accept-Language': 'de',
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
      it(`G17 ${name}: ${isKeyed ? 'two values, two answers' : 'the same answer whatever it says'}`, async () => {
        answerInTurn();
        const variants: Fields[] = [{}, { [name]: value }, { [name]: `${value}x` }];
        const numbers = await served(variants.map((fields) => () => get('/v1/f', fields)));
        expect(numbers).to.deep.equal(isKeyed ? [1, 2, 3] : [1, 1, 1]);
        const [asked] = stage.upstream.exchanges.filter((it) => it.all(name).length > 0);
        if (isKeyed) expect(asked?.all(name)).to.deep.equal([value]);
      });

      it(`G17 ${name}: two values, two answers, once the upstream says that they differ by it`, async () => {
        answerInTurn(`Cache-Control: max-age=600\r\nVary: ${name}\r\n`);
        const variants: Fields[] = [{}, { [name]: value }, { [name]: `${value}x` }];
        expect(await served(variants.map((fields) => () => get('/v1/f', fields)))).to.deep.equal([1, 2, 3]);
      });
    }

    it('G17 the table of those that are keyed is the one that is documented', () => {
      const documented = ['accept', 'accept-encoding', 'accept-language', 'content-type', 'openai-beta'];
      expect(KEYED_FIELDS).to.deep.equal(documented);
      return Promise.resolve();
    });

    it('G17 the answer that is kept was asked for with the fields of the one who asked, and says nothing of them', async () => {
      stage.upstream.script = (exchange) => {
        // An upstream that repeats what is outside the key, as some do.
        exchange.answer(
          200,
          'Cache-Control: max-age=600\r\nX-Upstream-Saw: it\r\n',
          valuesOf(exchange.request, 'x-forwarded-host').join(),
        );
      };
      await get('/v1/f', { 'X-Forwarded-Host': 'evil.test' });
      expect((await get('/v1/f')).text, 'what is not sent on cannot be repeated').to.equal('');
    });
  });

  describe('requests that look alike', () => {
    const alike: Record<string, readonly string[]> = {
      'the case of the path': ['/v1/a', '/v1/A'],
      escapes: ['/v1/A', '/v1/%41', '/v1/%2541'],
      'the case of escapes': ['/v1/a%2fb', '/v1/a%2Fb', '/v1/a/b'],
      'parameters twice': ['/v1/a?a=1', '/v1/a?a=1&a=2', '/v1/a?a=2&a=1', '/v1/a?a=2'],
      'parameters divided by a semicolon': ['/v1/a?a=1;b=2', '/v1/a?a=1&b=2', '/v1/a?a=1'],
      'the order of parameters': ['/v1/a?a=1&b=2', '/v1/a?b=2&a=1'],
      'an empty query': ['/v1/a', '/v1/a?', '/v1/a??', '/v1/a?&'],
      'a slash at the end': ['/v1/a', '/v1/a/'],
      'plus and space': ['/v1/a?q=a+b', '/v1/a?q=a%20b'],
      'a target that holds another method and target': ['/v1/a', '/v1/a?GET%20/v1/a', '/v1/a?%0A/v1/a'],
    };
    for (const [what, targets] of Object.entries(alike)) {
      it(`G18 are told apart by every byte of the target: ${what}`, async () => {
        answerInTurn();
        expect(await served(targets.map((target) => () => get(target)))).to.deep.equal(inTurn(targets.length));
        const asked = stage.upstream.exchanges.map(({ target }) => target);
        expect(asked, 'the key is what was forwarded').to.deep.equal(targets);
      });
    }

    it('G18 fields that name another target or method change neither what is asked nor what is served', async () => {
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

    it('G18 a GET with a body is forwarded with it, is answered from nothing kept, and nothing of it is kept', async () => {
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

    it('G18 nor of a GET with a body in chunks', async () => {
      answerInTurn();
      const fat = head('GET /v1/fat', stage.secret, { 'Transfer-Encoding': 'chunked' });
      await stage.ask(`${fat}1\r\nx\r\n0\r\n\r\n`);
      expect(cacheOf(await get('/v1/fat'))).to.equal('miss');
    });

    it('G18 methods do not share: a kept POST answers no GET, and the other way round', async () => {
      answerInTurn();
      await post('/v1/m', '{}', OPTED_IN);
      expect(cacheOf(await get('/v1/m'))).to.equal('miss');
      expect((await post('/v1/m', '{}', OPTED_IN)).text).to.equal('1');
    });
  });

  describe('what keys are made of', () => {
    // A purge removes what was kept for the former key as well (g-purge.test.ts); where it fails, this holds.
    it('G30 the upstream key: what was given for one stands where no other looks', () => {
      const facts = {
        projectId: 'p',
        method: 'GET',
        target: '/v1/k',
        bodyDigest: '',
        fields: new Map<string, string>(),
      };
      const [one, other] = ['one', 'other'].map((upstreamKeyDigest) => placeOf({ ...facts, upstreamKeyDigest }));
      expect(one?.variant).not.to.equal(other?.variant);
      return Promise.resolve();
    });

    it('G19 cannot be put into one part to be taken for another', async () => {
      answerInTurn();
      // What separates and counts in keys, where a client can put it.
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

    it('G19 nor can a value of Vary be taken for another field, or for none', async () => {
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

    it('G19 bodies that only differ in where they end are different', async () => {
      answerInTurn();
      const asks = ['a', 'a\n', 'ab', '', ' '].map((body) => () => post('/v1/k', body, OPTED_IN));
      expect(await served(asks)).to.deep.equal(inTurn(5));
    });
  });
});
