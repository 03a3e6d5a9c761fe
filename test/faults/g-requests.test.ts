/** Which clients may get a response from the cache, which directives a request can send, and what a hit looks like. */
import { VARY_BY_CARRIER } from '../../daemon/http/request-head.js';
import { expect } from 'chai';
import { TestClock } from '../support/clock.js';
import { type Fields, head, type RawResponse } from '../support/raw.js';
import { type Expected, expectRefusal, LIMIT_REACHED, PROJECT_INACTIVE, UNAUTHORIZED } from '../support/refusals.js';
import { staged } from './support/fault-fixture.js';

const FRESH = 'Cache-Control: max-age=600\r\n';
const NOT_CACHED: Expected = { status: 504, code: 'not_cached', error: 'not in cache' };

describe('G: requests and the cache', () => {
  const clock = new TestClock({ standsStill: true });
  const { stage, it } = staged({ env: { HTTP_CACHE_ENABLED: 'true' }, clock });

  const cacheOf = (answer: RawResponse) => answer.header('x-proxy-cache');
  const get = (fields: Fields = {}, secret: string | null = stage.secret, target = '/v1/r') =>
    stage.ask(head(`GET ${target}`, secret, fields));
  const withDirectives = (cacheControl: string | readonly string[], target?: string) =>
    get({ 'Cache-Control': cacheControl }, stage.secret, target);
  const answerInTurn = (fields = FRESH, status = 200) => {
    let answered = 0;
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      exchange.respond(status, fields, String(++answered));
    };
  };
  const asked = () => stage.upstream.exchanges.length;

  describe('requests that must be refused', () => {
    // Each makes a token that could have used the fresh entry a moment ago.
    const TURNED_AWAY: Record<string, { secret: () => Promise<string | null>; refusal: Expected }> = {
      'without a token': { secret: () => Promise.resolve(null), refusal: UNAUTHORIZED },
      'with an unknown token': { secret: () => Promise.resolve(`sk-wt-${'0'.repeat(52)}`), refusal: UNAUTHORIZED },
      'with a revoked token': {
        secret: async () => {
          const { id, token } = await stage.issue();
          expect(cacheOf(await get({}, token))).to.equal('hit');
          await stage.daemon.manage('DELETE', `/manage/tokens/${id}`);
          return token;
        },
        refusal: UNAUTHORIZED,
      },
      'with an expired token': {
        secret: async () => {
          const { token } = await stage.issue({ duration_hours: 1 });
          expect(cacheOf(await get({}, token))).to.equal('hit');
          clock.advance(3_600_000);
          await get({ 'Cache-Control': 'max-age=0' }); // The entry is fresh again.
          return token;
        },
        refusal: UNAUTHORIZED,
      },
      'with a token that reached its cap': {
        secret: async () => {
          const { token } = await stage.issue({ max_requests: 1 });
          expect(cacheOf(await get({}, token)), 'a hit takes no use').to.equal('hit');
          await get({}, token, '/v1/elsewhere');
          return token;
        },
        refusal: LIMIT_REACHED,
      },
    };
    for (const [who, { secret, refusal }] of Object.entries(TURNED_AWAY)) {
      it(`G03 a request ${who} is refused although the cache has a fresh entry`, async () => {
        answerInTurn();
        await get();
        const presented = await secret();
        expect(cacheOf(await get()), 'the entry').to.equal('hit');
        const before = asked();
        expectRefusal(await get({}, presented), refusal);
        expectRefusal(await get({ 'Cache-Control': 'only-if-cached' }, presented), refusal);
        expectRefusal(await get({ 'If-None-Match': '*' }, presented), refusal);
        expect(asked()).to.equal(before);
      });
    }

    it('G03 a request in an inactive project is refused although the cache has a fresh entry', async () => {
      answerInTurn();
      const project = await stage.daemon.createProject();
      const { token } = await stage.issue({ project_id: project.id });
      await get({}, token);
      expect(cacheOf(await get({}, token))).to.equal('hit');
      await stage.daemon.manage('PATCH', `/manage/projects/${project.id}`, { is_active: false });
      expectRefusal(await get({}, token), PROJECT_INACTIVE);
    });
  });

  describe('directives of a request', () => {
    const AGAIN: readonly (string | readonly string[])[] = [
      'no-cache',
      'NO-CACHE',
      'no-cache, max-age=100',
      'max-age=0',
      'max-age="0"',
      'max-age=x',
      'no-cache="x"',
      ['max-stale', 'no-cache'],
    ];
    for (const wanted of AGAIN) {
      it(`G06 ${JSON.stringify(wanted)}: goes upstream, and the response is stored for the next request`, async () => {
        answerInTurn();
        await get();
        expect((await withDirectives(wanted)).text).to.equal('2');
        expect([(await get()).text, asked()]).to.deep.equal(['2', 2]);
      });
    }

    for (const wanted of ['no-store', 'No-Store', 'no-store, max-age=100', ['max-age=100', 'no-store']]) {
      it(`G06 ${JSON.stringify(wanted)}: neither looked up nor stored`, async () => {
        answerInTurn();
        await withDirectives(wanted);
        expect((await get()).text, 'not stored').to.equal('2');
        expect((await withDirectives(wanted)).text, 'not looked up').to.equal('3');
        expect((await get()).text, 'the entry stays').to.equal('2');
      });
    }

    it('G06 Pragma: no-cache has the same effect if there is no Cache-Control', async () => {
      answerInTurn();
      await get();
      expect((await get({ Pragma: 'no-cache' })).text).to.equal('2');
      expect((await get({ Pragma: 'no-cache', 'Cache-Control': 'max-age=100' })).text).to.equal('2');
    });

    it('G06 only-if-cached without an entry: 504, nothing goes upstream, and no use counts', async () => {
      answerInTurn();
      for (const wanted of [
        'only-if-cached',
        'ONLY-IF-CACHED',
        'only-if-cached, no-cache',
        'only-if-cached, no-store',
      ]) {
        expectRefusal(await withDirectives(wanted), NOT_CACHED);
      }
      expectRefusal(await get({ 'Cache-Control': 'only-if-cached', Range: 'bytes=0-1' }), NOT_CACHED);
      expectRefusal(await stage.ask(stage.post('{}', { 'Cache-Control': 'only-if-cached' })), NOT_CACHED);
      await stage.expectNothingSpent();
      await get();
      expect(cacheOf(await withDirectives('only-if-cached'))).to.equal('hit');
      clock.advance(600_000);
      expectRefusal(await withDirectives('only-if-cached'), NOT_CACHED);
      expect(asked()).to.equal(1);
    });

    it('G06 only-if-cached does not wait for a response in flight', async () => {
      stage.upstream.script = () => undefined;
      const client = await stage.client(head('GET /v1/r', stage.secret));
      await stage.upstream.only();
      expectRefusal(await withDirectives('only-if-cached'), NOT_CACHED);
      client.destroy();
    });

    it('G06 max-age and min-fresh: no older response, and none that is about to expire', async () => {
      answerInTurn();
      await get();
      clock.advance(100_000);
      const served = async (wanted: string) => (await withDirectives(wanted)).text;
      expect(await served('max-age=100')).to.equal('1');
      expect(await served('min-fresh=500')).to.equal('1');
      expect(await served('max-age=99')).to.equal('2');
      clock.advance(100_000);
      expect(await served('min-fresh=501')).to.equal('3');
      expect(await served('max-stale=1000')).to.equal('3');
      clock.advance(600_000);
      expect(await served('max-stale=1000'), 'a stale response is never served').to.equal('4');
    });
  });

  describe('a conditional request', () => {
    const MODIFIED = 'Thu, 01 Jan 2026 00:00:00 GMT';
    const VALIDATED = `${FRESH}ETag: "v1"\r\nLast-Modified: ${MODIFIED}\r\nX-Which: first\r\n`;
    /** An upstream that supports conditional requests. */
    const validating = (says = '') => {
      stage.upstream.script = (exchange) => {
        const isHeld = exchange.all('if-none-match').join().includes('"v1"');
        if (isHeld) exchange.respond(304, `ETag: "v1"\r\n${FRESH}${says}`, '');
        else exchange.respond(200, VALIDATED, 'the body');
      };
    };

    for (const [fields, status] of [
      [{ 'If-None-Match': '"v1"' }, 304],
      [{ 'If-None-Match': 'W/"v1"' }, 304],
      [{ 'If-None-Match': '"v0", "v1"' }, 304],
      [{ 'If-None-Match': ['"v0"', '"v1"'] }, 304],
      [{ 'If-None-Match': '*' }, 304],
      [{ 'If-None-Match': '"v0"' }, 200],
      [{ 'If-None-Match': 'v1' }, 200],
      [{ 'If-None-Match': '"V1"' }, 200],
      [{ 'If-None-Match': '' }, 200],
      [{ 'If-Modified-Since': MODIFIED }, 304],
      [{ 'If-Modified-Since': 'Fri, 02 Jan 2026 00:00:00 GMT' }, 304],
      [{ 'If-Modified-Since': 'Wed, 31 Dec 2025 23:59:59 GMT' }, 200],
      [{ 'If-Modified-Since': '2999' }, 200],
      [{ 'If-Modified-Since': 'never' }, 200],
      [{ 'If-None-Match': '"v0"', 'If-Modified-Since': MODIFIED }, 200],
      [{ 'If-None-Match': '"v1"', 'If-Modified-Since': 'Wed, 31 Dec 2025 23:59:59 GMT' }, 304],
    ] as const) {
      it(`G21 on a fresh entry: ${status} from the cache to ${JSON.stringify(fields)}`, async () => {
        validating();
        await get();
        const answer = await get(fields);
        expect([answer.status, cacheOf(answer), answer.header('etag'), asked()]).to.deep.equal([
          status,
          'hit',
          '"v1"',
          1,
        ]);
        expect(answer.text).to.equal(status === 304 ? '' : 'the body');
        if (status === 304) expect(answer.header('content-length')).to.equal(undefined);
      });
    }

    it('G21 on a stale entry: the request goes upstream, and its 304 goes to the client and refreshes the entry', async () => {
      validating();
      await get();
      clock.advance(600_000);
      const answer = await get({ 'If-None-Match': '"v1"' });
      expect([answer.status, cacheOf(answer), asked()]).to.deep.equal([304, 'miss', 2]);
      const hit = await get();
      expect([hit.status, cacheOf(hit), hit.text]).to.deep.equal([200, 'hit', 'the body']);
    });

    it("G21 with a client's own condition: a 304 that does not name the entry does not refresh it", async () => {
      validating();
      await get();
      clock.advance(600_000);
      stage.upstream.script = (exchange) => {
        exchange.respond(304, `ETag: "mine"\r\n${FRESH}`, '');
      };
      expect((await get({ 'If-None-Match': '"mine"' })).status).to.equal(304);
      validating();
      const after = await get();
      expect([after.status, cacheOf(after), after.text]).to.deep.equal([200, 'miss', 'the body']);
    });

    it('G21 without an entry: the 304 is forwarded and not served to other clients', async () => {
      validating();
      expect((await get({ 'If-None-Match': '"v1"' })).status).to.equal(304);
      const next = await get();
      expect([next.status, cacheOf(next), next.text]).to.deep.equal([200, 'miss', 'the body']);
    });

    it('G21 a stale entry and no condition: the entry is revalidated and served as a miss', async () => {
      validating('X-Which: second\r\nX-More: yes\r\n');
      await get();
      clock.advance(600_000);
      const confirmed = await get();
      expect([confirmed.status, cacheOf(confirmed), confirmed.text]).to.deep.equal([200, 'miss', 'the body']);
      const { request } = stage.upstream.exchanges[1]!;
      const conditions = request.fields.filter(([name]) => /^if-/i.test(name));
      expect(conditions).to.deep.equal([
        ['if-none-match', '"v1"'],
        ['if-modified-since', MODIFIED],
      ]);
      const hit = await get();
      for (const answer of [confirmed, hit]) {
        expect([answer.all('x-which'), answer.all('x-more'), answer.all('last-modified')]).to.deep.equal([
          ['second'],
          ['yes'],
          [MODIFIED],
        ]);
      }
      expect([cacheOf(hit), hit.text, await stage.uses()]).to.deep.equal(['hit', 'the body', 2]);
    });

    for (const says of ['no-store', 'private']) {
      it(`G21 a 304 with ${says} does not refresh the entry`, async () => {
        validating();
        await get();
        clock.advance(600_000);
        stage.upstream.script = (exchange) => {
          exchange.respond(304, `ETag: "v1"\r\nCache-Control: ${says}\r\n`, '');
        };
        await get();
        stage.upstream.script = (exchange) => {
          exchange.respond(200, FRESH, 'new');
        };
        expect((await get()).text).to.equal('new');
      });
    }

    it('G21 a 304 that was not requested is not stored', async () => {
      stage.upstream.script = (exchange) => {
        exchange.respond(304, FRESH, '');
      };
      await get();
      validating();
      expect((await get()).text).to.equal('the body');
    });
  });

  describe('a hit', () => {
    it('G29 a hit states its age, that it is a hit, and the Date of the stored response; nothing of the request that filled the cache', async () => {
      const sent = new Date(clock.now() - 5_000).toUTCString();
      stage.upstream.script = (exchange) => {
        exchange.respond(
          200,
          `${FRESH}Date: ${sent}\r\nAge: 7\r\nX-Request-ID: upstreams\r\nServer-Timing: db;dur=1\r\nX-Proxy-Cache: hit\r\n` +
            'X-Token-Expires-At: never\r\nX-Token-Requests-Remaining: 9\r\nX-Upstream-Request-ID: fake\r\n' +
            'Access-Control-Allow-Origin: *\r\nProxy-Status: x\r\nKeep-Alive: x\r\nX-Hop: x\r\nConnection: X-Hop\r\nX-Kept: yes\r\n' +
            'Cache-Status: cdn; hit\r\n',
        );
      };
      const capped = await stage.issue({ max_requests: 5 });
      const first = await get({ 'X-Request-ID': 'first-of-all' });
      expect(first.all('x-upstream-request-id')).to.deep.equal(['upstreams']);
      clock.advance(10_000);
      const hit = await get({ 'X-Request-ID': 'mine' }, capped.token);
      const expected: Record<string, string[]> = {
        'x-proxy-cache': ['hit'],
        age: ['17'],
        'cache-status': ['cdn; hit, llmp; hit; ttl=583'],
        'x-request-id': ['mine'],
        'x-kept': ['yes'],
        'x-token-expires-at': [capped.expires_at],
        'x-token-requests-remaining': ['5'],
        'content-length': [String(first.body.length)],
        vary: [VARY_BY_CARRIER],
        'cache-control': ['max-age=600'],
        date: [sent],
      };
      for (const [name, values] of Object.entries(expected)) expect(hit.all(name), name).to.deep.equal(values);
      const GONE = ['x-upstream-request-id', 'server-timing', 'access-control-allow-origin', 'proxy-status', 'x-hop'];
      for (const name of GONE) expect(hit.all(name), name).to.deep.equal([]);
    });

    it('G29 a hit is recorded as one, without a request ID of the upstream', async () => {
      answerInTurn(`${FRESH}X-Request-ID: upstreams\r\n`);
      await get();
      await get();
      expect(stage.daemon.ended.map(({ cache, upstreamRequestId }) => [cache, upstreamRequestId])).to.deep.equal([
        ['miss', 'upstreams'],
        ['hit', null],
      ]);
    });

    it("G29 a forwarded response has the upstream's Age unchanged", async () => {
      answerInTurn(`${FRESH}Age: 7\r\nX-PROXY-CACHE: hit\r\n`);
      const miss = await get();
      expect([miss.all('age'), miss.all('x-proxy-cache')]).to.deep.equal([['7'], ['miss']]);
    });
  });
});
