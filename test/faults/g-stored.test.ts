/** Which responses are stored, and for how long. */
import { expect } from 'chai';
import { TestClock } from '../support/clock.js';
import { type Fields, head, type RawResponse } from '../support/raw.js';
import { staged } from './support/fault-fixture.js';

const OPTED_IN: Fields = { 'Cache-Control': 'public' };
const HOUR_S = 3_600;
const MIB = 1024 * 1024;
/** The default lifetime that HTTP_CACHE_DEFAULT_TTL gives to /v1/models. */
const DEFAULT_S = 300;

describe('G: which responses are stored', () => {
  // The clock stands still, so lifetimes are exact.
  const clock = new TestClock({ standsStill: true });
  const { stage, it, itInOneProcess } = staged({ env: { HTTP_CACHE_ENABLED: 'true' }, clock });

  const cacheOf = (answer: RawResponse) => answer.header('x-proxy-cache');
  const get = (target = '/v1/files', fields: Fields = {}) => stage.ask(head(`GET ${target}`, stage.secret, fields));
  const post = (body: string, fields: Fields = OPTED_IN) => stage.ask(stage.post(body, fields));
  const answering = (fields: string, status = 200, body?: string) => {
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      exchange.respond(status, fields, body);
    };
  };
  const date = (inSeconds: number) => new Date(clock.now() + inSeconds * 1000).toUTCString();

  /** Requests again and again: a response with a lifetime of `seconds` is served up to its last millisecond and not after. */
  const expectLife = async (seconds: number, ask: () => Promise<RawResponse>) => {
    expect(cacheOf(await ask()), 'the first request').to.equal('miss');
    if (seconds > 0) {
      clock.advance(seconds * 1000 - 1);
      expect(cacheOf(await ask()), `after ${seconds} s less 1 ms`).to.equal('hit');
      clock.advance(1);
    }
    expect(cacheOf(await ask()), `after ${seconds} s`).to.equal('miss');
  };

  describe('a response without a stated lifetime', () => {
    it('G04 without a stated lifetime, a response has the default on configured paths, within its project', async () => {
      answering('');
      await expectLife(DEFAULT_S, () => get('/v1/models'));
      await expectLife(0, () => get('/v1/batches/b'));
      await expectLife(0, () => get('/v1/models-of-mine'));
      await expectLife(DEFAULT_S, () => get('/v1/models/gpt?x=1'));
    });

    it('G04 without a stated lifetime, a response has the default if its client opted in', async () => {
      answering('');
      await expectLife(DEFAULT_S, () => get('/v1/batches/b', OPTED_IN));
      await expectLife(DEFAULT_S, () => post('{}'));
    });

    it('G04 a response that one client opted in to is served only to clients that opt in', async () => {
      answering('');
      await get('/v1/batches/b', OPTED_IN);
      expect([cacheOf(await get('/v1/batches/b')), cacheOf(await get('/v1/batches/b'))]).to.deep.equal([
        'miss',
        'miss',
      ]);
      expect((await get('/v1/batches/b', { 'Cache-Control': 'only-if-cached' })).status).to.equal(504);
      expect(cacheOf(await get('/v1/batches/b', OPTED_IN))).to.equal('hit');
    });

    it('G26 a default lifetime begins when the response arrives, however long it took', async () => {
      stage.upstream.script = (exchange) => {
        clock.advance((DEFAULT_S + 1) * 1000);
        exchange.respond(200, '');
      };
      await get('/v1/models');
      const hit = await get('/v1/models');
      expect([cacheOf(hit), hit.header('age')]).to.deep.equal(['hit', String(DEFAULT_S + 1)]);
    });

    it('G04 Last-Modified gives no lifetime', async () => {
      answering(`Last-Modified: ${date(-1_000 * HOUR_S)}\r\n`);
      await expectLife(0, () => get());
    });
  });

  describe('Cache-Control, Pragma and Expires in many spellings', () => {
    // On a path with the default lifetime of 300 s. In seconds.
    const LIVES: readonly (readonly [fields: string, seconds: number])[] = [
      ['Cache-Control: max-age=60', 60],
      ['Cache-Control: max-age=1', 1],
      ['Cache-Control: max-age=0', 0],
      ['cache-control: MAX-AGE=60', 60],
      ['CACHE-CONTROL: Max-Age=60', 60],
      ['Cache-Control:max-age=60', 60],
      ['Cache-Control:   max-age=60   ', 60],
      ['Cache-Control: \tmax-age=60', 60],
      ['Cache-Control: ,, max-age=60 ,,', 60],
      ['Cache-Control: public,max-age=60,must-revalidate', 60],
      ['Cache-Control: max-age="60"', 60],
      ['Cache-Control: max-age = 60', 60],
      ['Cache-Control: max-age=0060', 60],
      ['Cache-Control: max-age=60;no-store', 0],
      ['Cache-Control: max-age', 0],
      ['Cache-Control: max-age=', 0],
      ['Cache-Control: max-age=-1', 0],
      ['Cache-Control: max-age=60.5', 0],
      ['Cache-Control: max-age=6e1', 0],
      ['Cache-Control: max-age=+60', 0],
      ['Cache-Control: max-age=0x3c', 0],
      ['Cache-Control: max-age=sixty', 0],
      ["Cache-Control: max-age='60'", 0],
      ['Cache-Control: max-age=60, max-age=10', 10],
      ['Cache-Control: max-age=10, max-age=60', 10],
      ['Cache-Control: max-age=60\r\nCache-Control: max-age=10', 10],
      ['Cache-Control: max-age=60, max-age=x', 0],
      ['Cache-Control: xmax-age=60', DEFAULT_S],
      ['Cache-Control: max-agex=60', DEFAULT_S],
      ['Cache-Control: ext="max-age=60"', DEFAULT_S],
      ['Cache-Control: ext="a, max-age=60", max-age=10', 10],
      ['Cache-Control: ext="a \\", no-store"', DEFAULT_S],
      ['Cache-Control:', DEFAULT_S],
      ['Cache-Control: immutable', DEFAULT_S],
      ['Cache-Control: public', DEFAULT_S],
      ['Cache-Control: stale-while-revalidate=600, max-age=10', 10],
      ['Cache-Control: stale-if-error=600, max-age=10', 10],

      ['Cache-Control: s-maxage=60', 60],
      ['Cache-Control: s-maxage=60, max-age=10', 60],
      ['Cache-Control: max-age=60, s-maxage=10', 10],
      ['Cache-Control: s-maxage=0, max-age=60', 0],
      ['Cache-Control: S-MaxAge=60', 60],

      ['Cache-Control: no-store', 0],
      ['Cache-Control: no-store, max-age=60', 0],
      ['Cache-Control: max-age=60, no-store', 0],
      ['Cache-Control: max-age=60\r\nCache-Control: no-store', 0],
      ['Cache-Control: NO-STORE', 0],
      ['Cache-Control: No-Store , max-age=60', 0],
      ['Cache-Control: no-store=1, max-age=60', 0],
      ['Cache-Control: no-store="", max-age=60', 0],
      ['Cache-Control: no-store, must-understand, max-age=60', 0],
      ['Cache-Control: ext="broken, no-store', 0],
      ['Cache-Control: ext="broken, no-store\r\nCache-Control: max-age=60', 0],
      ['Cache-Control: max-age=60 no-store', 0],

      ['Cache-Control: private', 0],
      ['Cache-Control: private, max-age=60', 0],
      ['Cache-Control: PRIVATE="Set-Cookie", max-age=60', 0],
      ['Cache-Control: private, public, max-age=60', 0],

      // For the caches of CDNs (RFC 9213): these fields can forbid or shorten storing, but allow nothing.
      ['CDN-Cache-Control: no-store', 0],
      ['Cache-Control: max-age=60\r\nCDN-Cache-Control: No-Store', 0],
      ['Cache-Control: max-age=60\r\nCDN-Cache-Control: private', 0],
      ['Cache-Control: max-age=60\r\nCDN-Cache-Control: no-cache', 0],
      ['Cache-Control: max-age=60\r\nCDN-Cache-Control: max-age=10', 10],
      ['Cache-Control: max-age=60\r\nCDN-Cache-Control: max-age=600', 60],
      ['Cache-Control: no-store\r\nCDN-Cache-Control: max-age=600', 0],

      ['Cache-Control: no-cache', 0],
      ['Cache-Control: no-cache, max-age=60', 0],
      ['Cache-Control: NO-CACHE="X-A", max-age=60', 0],
      ['Pragma: no-cache', 0],
      ['Pragma: NO-CACHE', 0],
      ['Pragma: x, no-cache', 0],
      ['Pragma: no-cache\r\nCache-Control: max-age=60', 60],

      ['Expires: 0', 0],
      ['Expires: -1', 0],
      ['Expires: 3000', 0],
      ['Expires: 2999-01-01', 0],
      ['Expires: 2999-01-01T00:00:00Z', 0],
      ['Expires: 1 Jan 2999', 0],
      ['Expires: Thu, 18 Aug 2050 02:01:18', 0],
      ['Expires: Thu, 18 Aug 2050 02:01:18 CET', 0],
      ['Expires: Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:18 GMT', 0],
      ['Expires: Thu, 18 Aug 2050 02:01:18 GMT\r\nExpires: Thu, 18 Aug 2050 02:01:18 GMT', 0],
      ['Expires:', 0],
      ['Expires: never', 0],
      ['Expires: Thu, 01 Jan 1970 00:00:00 GMT', 0],
      ['Expires: 0\r\nCache-Control: max-age=60', 60],
      ['Expires: Thu, 18 Aug 2050 02:01:18 GMT\r\nCache-Control: max-age=60', 60],
      ['Expires: Thu, 18 Aug 2050 02:01:18 GMT\r\nCache-Control: max-age=x', 0],
    ];
    for (const [fields, seconds] of LIVES) {
      it(`G05 ${JSON.stringify(fields)}: ${seconds === 0 ? 'not stored, every request goes upstream' : `stored for ${seconds} s`}`, async () => {
        answering(`${fields}\r\n`);
        await expectLife(seconds, () => get('/v1/models'));
      });
    }

    // Each second of these hours the processes tell each other how they are.
    itInOneProcess('G05 a lifetime that overflows is a long time', async () => {
      answering('Cache-Control: max-age=99999999999999999999\r\n');
      await get('/v1/models');
      clock.advance(12 * HOUR_S * 1000);
      expect(cacheOf(await get('/v1/models'))).to.equal('hit');
    });

    it('G05 opting in a POST does not override the directives of the response', async () => {
      for (const says of ['no-store', 'private', 'no-cache', 'max-age=0']) {
        answering(`Cache-Control: ${says}\r\n`);
        await expectLife(0, () => post(`{"says":"${says}"}`));
      }
      answering('Cache-Control: max-age=10\r\n');
      await expectLife(10, () => post('{}'));
    });
  });

  describe('a POST', () => {
    it('G07 a POST is stored only if its client opts in, and served only to clients that opt in', async () => {
      answering('Cache-Control: max-age=60\r\n');
      await post('{"a":1}', {});
      expect(cacheOf(await post('{"a":1}', {}))).to.equal('miss');
      expect(cacheOf(await post('{"a":1}'))).to.equal('miss');
      expect(cacheOf(await post('{"a":1}'))).to.equal('hit');
      expect(cacheOf(await post('{"a":1}', {}))).to.equal('miss');
      expect(cacheOf(await post('{"a":1}', { 'Cache-Control': 'max-age=60, PUBLIC' }))).to.equal('hit');
    });

    it('G07 a body that differs in a byte, or in the order of its JSON keys, is another entry', async () => {
      answering('Cache-Control: max-age=60\r\n');
      const bodies = ['{"a":1,"b":2}', '{"b":2,"a":1}', '{"a":1,"b":2} ', '{"a":1,"b":3}'];
      for (const body of bodies) expect(cacheOf(await post(body)), body).to.equal('miss');
      for (const body of bodies) expect(cacheOf(await post(body)), body).to.equal('hit');
    });

    it('G07 a chunked POST and one with Content-Length share an entry', async () => {
      answering('Cache-Control: max-age=60\r\n');
      await post('{"a":1}');
      const inChunks = await post('4\r\n{"a"\r\n3\r\n:1}\r\n0\r\n\r\n', {
        ...OPTED_IN,
        'Transfer-Encoding': 'chunked',
      });
      expect(cacheOf(inChunks)).to.equal('hit');
    });

    it('G07 a POST of up to 1 MiB is stored, and no larger one', async () => {
      answering('Cache-Control: max-age=60\r\n');
      for (const [bytes, expected] of [
        [MIB, 'hit'],
        [MIB + 1, 'miss'],
      ] as const) {
        await post('x'.repeat(bytes));
        expect(cacheOf(await post('x'.repeat(bytes)))).to.equal(expected);
        const inChunks = `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n0\r\n\r\n`;
        expect(cacheOf(await post(inChunks, { ...OPTED_IN, 'Transfer-Encoding': 'chunked' }))).to.equal(expected);
      }
    });

    for (const status of [201, 202, 203, 204, 301, 404, 410]) {
      it(`G07 a response to a POST with status ${status} is not stored`, async () => {
        answering('Cache-Control: max-age=60\r\n', status, status === 204 ? '' : undefined);
        await post('{}');
        expect(cacheOf(await post('{}'))).to.equal('miss');
      });
    }

    for (const method of ['PUT', 'PATCH', 'DELETE', 'QUERY']) {
      it(`G07 no other method is stored: ${method}`, async () => {
        answering('Cache-Control: max-age=60\r\n');
        const ask = () =>
          stage.ask(head(`${method} /v1/x`, stage.secret, { ...OPTED_IN, 'Content-Length': '2' }) + '{}');
        const first = await ask();
        if (first.status !== 200) return; // For a method that is not forwarded at all.
        expect(cacheOf(await ask())).to.equal('miss');
      });
    }
  });

  describe('an event stream', () => {
    const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';
    const EVENT = 'e\r\ndata: {"a":1}\n\r\n';

    it('G08 a streamed response is stored once it is complete, and replayed byte for byte', async () => {
      stage.upstream.script = (exchange) => {
        exchange.send(`${HEAD}${EVENT}${EVENT}0\r\n\r\n`);
      };
      const first = await post('{"stream":true}');
      const hit = await post('{"stream":true}');
      expect([cacheOf(hit), hit.text]).to.deep.equal(['hit', first.text]);
      expect(hit.header('content-type')).to.equal('text/event-stream');
      expect(hit.header('x-accel-buffering')).to.equal('no');
    });

    it('G08 a streamed response reaches its client event by event while it is captured', async () => {
      stage.upstream.script = (exchange) => {
        exchange.send(HEAD + EVENT);
      };
      const client = await stage.client(stage.post('{"stream":true}', OPTED_IN));
      await client.seen('data: {"a":1}');
      const exchange = await stage.upstream.only();
      exchange.send('0\r\n\r\n');
      await client.response();
    });

    it('G08 a stream that ends early is not stored', async () => {
      stage.upstream.script = (exchange) => {
        exchange.send(HEAD + EVENT);
        exchange.fin();
      };
      const client = await stage.client(stage.post('{"stream":true}', OPTED_IN));
      await client.closed;
      answering('');
      expect(cacheOf(await post('{"stream":true}'))).to.equal('miss');
    });
  });

  describe('headers that would act on the origin of the Admin UI', () => {
    const fields = ['Strict-Transport-Security: max-age=1', 'Clear-Site-Data: "*"', 'Alt-Svc: h3=":443"', 'Refresh: 0'];

    it('G08 a hit does not contain them', async () => {
      answering(`Cache-Control: max-age=60\r\nX-Fine: a\r\n${fields.map((field) => `${field}\r\n`).join('')}`);
      for (const expected of ['miss', 'hit']) {
        const answer = await get('/v1/models');
        expect([cacheOf(answer), answer.header('x-fine')]).to.deep.equal([expected, 'a']);
        for (const field of fields) expect(answer.all(field.split(':')[0] ?? ''), field).to.deep.equal([]);
      }
    });
  });

  describe('a response that is for one request only', () => {
    for (const cookie of ['Set-Cookie: a=1', 'set-cookie: a=1', 'Set-Cookie:']) {
      it(`G10 a response with a cookie is not stored: ${cookie}`, async () => {
        answering(`Cache-Control: public, max-age=60\r\n${cookie}\r\n`);
        await expectLife(0, () => get('/v1/models'));
        await expectLife(0, () => post('{}'));
      });
    }

    it('G11 a partial response is forwarded and not stored, nor is any response to a Range request', async () => {
      stage.upstream.script = (exchange) => {
        const isPart = exchange.all('range').length > 0;
        if (isPart) exchange.respond(206, 'Content-Range: bytes 0-1/4\r\nCache-Control: max-age=60\r\n', 'ab');
        else exchange.respond(200, 'Cache-Control: max-age=60\r\n', 'abcd');
      };
      const part = () => get('/v1/r', { Range: 'bytes=0-1' });
      expect([(await part()).status, cacheOf(await part())]).to.deep.equal([206, 'miss']);
      const whole = await get('/v1/r');
      expect([cacheOf(whole), whole.text]).to.deep.equal(['miss', 'abcd']);
      const again = await part();
      expect([cacheOf(again), again.text]).to.deep.equal(['miss', 'ab']);
      expect((await get('/v1/r')).text).to.equal('abcd');
    });

    it('G11 a complete response to a Range request is not stored', async () => {
      answering('Cache-Control: max-age=60\r\n');
      await get('/v1/r', { Range: 'bytes=0-1' });
      expect(cacheOf(await get('/v1/r'))).to.equal('miss');
    });

    for (const status of [200, 206]) {
      it(`G11 a partial response that was not requested is not stored, with status ${status}`, async () => {
        answering('Cache-Control: max-age=60\r\nContent-Range: bytes 0-1/4\r\n', status);
        await expectLife(0, () => get('/v1/r'));
      });
    }

    for (const field of ['If-Range: "v"', 'If-Match: "v"', 'If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT']) {
      it(`G11 a response to a request with ${field} is not stored`, async () => {
        answering('Cache-Control: max-age=60\r\nETag: "v"\r\n');
        const [name = '', value = ''] = field.split(/: /);
        await get('/v1/r', { [name]: value });
        expect(cacheOf(await get('/v1/r'))).to.equal('miss');
        expect(cacheOf(await get('/v1/r', { [name]: value }))).to.equal('miss');
      });
    }
  });

  describe('by its status', () => {
    const KEPT = [200, 203, 301, 308, 404, 410];
    const NOT_KEPT = [
      201, 202, 204, 205, 206, 300, 302, 303, 307, 400, 401, 402, 403, 405, 408, 409, 414, 418, 422, 425, 429, 451,
    ];
    const BROKEN = [500, 501, 502, 503, 504, 529, 599];
    const ask = (status: number) => {
      answering('Cache-Control: public, max-age=60\r\n', status, status === 204 || status === 205 ? '' : undefined);
      return expectLife(KEPT.includes(status) ? 60 : 0, () => get('/v1/s'));
    };
    for (const status of KEPT) it(`G20 a ${status} that states a lifetime is stored for it`, () => ask(status));
    for (const status of [...NOT_KEPT, ...BROKEN]) it(`G20 a ${status} is not stored`, () => ask(status));
    for (const status of [400, 401, 403, 429, 500, 503]) {
      it(`G20 a ${status} neither replaces nor ends a stale entry of a successful response`, async () => {
        stage.upstream.script = (exchange) => {
          if (exchange.all('if-none-match').length > 0)
            exchange.respond(304, 'ETag: "v"\r\nCache-Control: max-age=60\r\n', '');
          else exchange.respond(200, 'ETag: "v"\r\nCache-Control: max-age=60\r\n', 'good');
        };
        await get('/v1/s');
        clock.advance(61_000);
        const { script } = stage.upstream;
        answering('', status, 'bad');
        expect((await get('/v1/s')).text).not.to.equal('good');
        stage.upstream.script = script;
        expect((await get('/v1/s')).text).to.equal('good');
      });
    }
  });

  describe('GET and HEAD', () => {
    const askHead = () => stage.ask(head('HEAD /v1/h', stage.secret), 'HEAD');
    const FRESH = 'Cache-Control: max-age=60\r\nContent-Type: text/plain\r\n';

    it('G22 a GET is never served from a HEAD', async () => {
      stage.upstream.script = (exchange) => {
        const body = exchange.method === 'HEAD' ? '' : 'body';
        exchange.send(`HTTP/1.1 200 OK\r\n${FRESH}Content-Length: 4\r\n\r\n${body}`);
      };
      expect(cacheOf(await askHead())).to.equal('miss');
      expect(cacheOf(await askHead())).to.equal('miss');
      const got = await get('/v1/h');
      expect([cacheOf(got), got.text]).to.deep.equal(['miss', 'body']);
      const hit = await askHead();
      expect([cacheOf(hit), hit.header('content-length'), hit.body.length]).to.deep.equal(['hit', '4', 0]);
      expect((await get('/v1/h')).text).to.equal('body');
    });

    it('G22 a HEAD that reveals a change does not remove the stored body', async () => {
      answering(FRESH, 200, 'body');
      await get('/v1/h');
      clock.advance(61_000);
      stage.upstream.script = (exchange) => {
        exchange.send(`HTTP/1.1 200 OK\r\n${FRESH}Content-Length: ${exchange.method === 'HEAD' ? 0 : 4}\r\n\r\n`);
        if (exchange.method !== 'HEAD') exchange.send('more');
      };
      expect(cacheOf(await askHead())).to.equal('miss');
      expect((await get('/v1/h')).text).to.equal('more');
    });

    it('G22 a HEAD does not wait for a GET in flight and does not affect it', async () => {
      stage.upstream.script = (exchange) => {
        exchange.send(`HTTP/1.1 200 OK\r\n${FRESH}Content-Length: 4\r\n\r\n`);
      };
      const client = await stage.client(head('GET /v1/h', stage.secret));
      await client.seen('\r\n\r\n');
      const going = await stage.upstream.only();
      expect(cacheOf(await askHead())).to.equal('miss');
      going.send('body');
      expect((await client.response()).text).to.equal('body');
      expect(cacheOf(await askHead())).to.equal('hit');
    });
  });

  describe('lifetimes', () => {
    const AGED: readonly (readonly [fields: string, seconds: number])[] = [
      ['Age: 0', 60],
      ['Age: 20', 40],
      ['Age: 59', 1],
      ['Age: 60', 0],
      ['Age: 1000', 0],
      ['age: 020', 40],
      ['Age: 20\r\nAge: 30', 40],
      ['Age: 20, 30', 40],
      ['Age: -20', 60],
      ['Age: 20.5', 60],
      ['Age: old', 60],
      ['Age:', 60],
      ['Age: 99999999999999999999', 0],
    ];
    for (const [fields, seconds] of AGED) {
      it(`G26 max-age=60 and ${JSON.stringify(fields)}: fresh for ${seconds} s`, async () => {
        answering(`Cache-Control: max-age=60\r\n${fields}\r\n`);
        await expectLife(seconds, () => get('/v1/a'));
      });
    }

    it('G26 the Age of a hit is the age on arrival plus the time in the cache', async () => {
      answering('Cache-Control: max-age=60\r\nAge: 20\r\n');
      await get('/v1/a');
      for (const [passed, age] of [
        [0, '20'],
        [999, '20'],
        [1, '21'],
        [10_000, '31'],
      ] as const) {
        clock.advance(passed);
        expect((await get('/v1/a')).header('age')).to.equal(age);
      }
    });

    it('G26 the time that a response takes to arrive is part of its age', async () => {
      stage.upstream.script = (exchange) => {
        exchange.send('HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nbo');
      };
      const client = await stage.client(head('GET /v1/slow', stage.secret));
      await client.seen('bo');
      clock.advance(20_000);
      (await stage.upstream.only()).send('dy');
      await client.response();
      expect((await get('/v1/slow')).header('age')).to.equal('20');
      clock.advance(39_999);
      expect(cacheOf(await get('/v1/slow'))).to.equal('hit');
      clock.advance(1);
      answering('');
      expect(cacheOf(await get('/v1/slow'))).to.equal('miss');
    });

    // Measured by the system clock, if nothing else is stated. A year of two digits is at most 50 years ahead: today 50 means 2050, and 99
    // means 1999.
    it('G26 Expires of 2050 and of 1999 in the RFC 850 format', async () => {
      answering('Expires: Thursday, 18-Aug-50 02:01:18 GMT\r\n');
      await get('/v1/fifty');
      expect(cacheOf(await get('/v1/fifty'))).to.equal('hit');
      answering('Expires: Wednesday, 18-Aug-99 02:01:18 GMT\r\n');
      await get('/v1/ninety-nine');
      expect(cacheOf(await get('/v1/ninety-nine'))).to.equal('miss');
    });

    const EXPIRING: readonly (readonly [what: string, fields: () => string, seconds: number])[] = [
      ['with a Date of now', () => `Date: ${date(0)}\r\nExpires: ${date(60)}`, 60],
      ['without Date', () => `Expires: ${date(60)}`, 60],
      ['with an invalid Date', () => `Date: now\r\nExpires: ${date(60)}`, 60],
      ['with Age', () => `Date: ${date(0)}\r\nExpires: ${date(60)}\r\nAge: 20`, 40],
      ['with a Date long ago', () => `Date: ${date(-HOUR_S)}\r\nExpires: ${date(60)}`, 60],
      ['in the past', () => `Date: ${date(0)}\r\nExpires: ${date(-1)}`, 0],
      ['equal to its Date', () => `Date: ${date(0)}\r\nExpires: ${date(0)}`, 0],
      ['before its Date', () => `Date: ${date(120)}\r\nExpires: ${date(60)}`, 0],
      [
        'by an upstream whose clock is an hour ahead',
        () => `Date: ${date(HOUR_S)}\r\nExpires: ${date(HOUR_S + 60)}`,
        60,
      ],
      ['in the RFC 850 format', () => `Expires: ${rfc850(clock.now() + 60_000)}`, 60],
      ['in the asctime format', () => `Expires: ${asctime(clock.now() + 60_000)}`, 60],
    ];
    for (const [what, fields, seconds] of EXPIRING) {
      it(`G26 Expires ${what}: fresh for ${seconds} s`, async () => {
        clock.advance(1000 - (clock.now() % 1000)); // Dates have whole seconds.
        answering(`${fields()}\r\n`);
        await expectLife(seconds, () => get('/v1/e'));
      });
    }

    const DATED: readonly (readonly [what: string, fields: () => string, ageS: number, freshS: number])[] = [
      ['a Date of 7 s ago', () => `Date: ${date(-7)}\r\nCache-Control: max-age=60`, 7, 53],
      ['a smaller Age', () => `Date: ${date(-7)}\r\nAge: 3\r\nCache-Control: max-age=60`, 7, 53],
      ['a larger Age', () => `Date: ${date(-7)}\r\nAge: 20\r\nCache-Control: max-age=60`, 20, 40],
      ['Expires', () => `Date: ${date(-7)}\r\nExpires: ${date(53)}`, 7, 53],
      ['Expires and Age', () => `Date: ${date(-7)}\r\nAge: 7\r\nExpires: ${date(53)}`, 7, 53],
      ['a Date in the future', () => `Date: ${date(7)}\r\nCache-Control: max-age=60`, 0, 60],
      ['no Date', () => 'Cache-Control: max-age=60', 0, 60],
    ];
    for (const [what, fields, ageS, freshS] of DATED) {
      it(`G26 the age of a response with ${what} begins with ${ageS} s, and it is fresh for ${freshS} s`, async () => {
        clock.advance(1000 - (clock.now() % 1000)); // Dates have whole seconds.
        answering(`${fields()}\r\n`);
        await get('/v1/e');
        clock.advance(1000);
        const hit = await get('/v1/e');
        expect([cacheOf(hit), hit.header('age')]).to.deep.equal(['hit', String(ageS + 1)]);
        await stage.clearCache();
        clock.advance(1000 - (clock.now() % 1000));
        answering(`${fields()}\r\n`);
        await expectLife(freshS, () => get('/v1/e'));
      });
    }

    it('a default lifetime begins now, also if the clock of the upstream is late', async () => {
      clock.advance(1000 - (clock.now() % 1000));
      answering(`Date: ${date(-HOUR_S)}\r\n`);
      await get('/v1/models');
      const hit = await get('/v1/models');
      expect([cacheOf(hit), hit.header('age')]).to.deep.equal(['hit', String(HOUR_S)]);
    });

    for (const jump of [-HOUR_S, HOUR_S]) {
      // Several processes that missed half an hour of each other's changes read everything again.
      const itJumps = jump > 0 ? itInOneProcess : it;
      itJumps(`G26 a jump of the system clock by ${jump} s does not change the lifetime of an entry`, async () => {
        clock.advance(1000 - (clock.now() % 1000));
        const lives = [`Expires: ${date(60)}`, `Date: ${date(0)}\r\nExpires: ${date(60)}`, 'Cache-Control: max-age=60'];
        for (const [index, fields] of lives.entries()) {
          answering(`${fields}\r\n`);
          await get(`/v1/j${index}`);
        }
        clock.setWall(jump * 1000);
        clock.advance(59_999);
        for (const index of lives.keys()) {
          const hit = await get(`/v1/j${index}`);
          expect([cacheOf(hit), hit.header('age')]).to.deep.equal(['hit', '59']);
        }
        clock.advance(1);
        for (const index of lives.keys()) expect(cacheOf(await get(`/v1/j${index}`))).to.equal('miss');
        clock.setWall(-jump * 1000);
      });
    }
  });
});

function rfc850(ms: number): string {
  const day = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'][new Date(ms).getUTCDay()];
  const [, date, month, year = '', time] = new Date(ms).toUTCString().split(' ');
  return `${day}, ${date}-${month}-${year.slice(-2)} ${time} GMT`;
}

function asctime(ms: number): string {
  const [day = '', date = '', month, year, time] = new Date(ms).toUTCString().split(' ');
  return `${day.slice(0, 3)} ${month} ${date.replace(/^0/, ' ')} ${time} ${year}`;
}
