import { expect } from 'chai';
import { eventually } from './support/eventually.js';
import { chunk, type Fields, head, LAST_CHUNK } from './support/raw.js';
import {
  BODY_TOO_LARGE,
  CODING_NOT_SUPPORTED,
  EXPECTATION_FAILED,
  type Expected,
  expectRefusal,
  HEADERS_TOO_LARGE,
  MALFORMED,
  METHOD_NOT_ALLOWED,
  REQUEST_TIMEOUT,
  URI_TOO_LONG,
  VERSION_NOT_SUPPORTED,
} from './support/refusals.js';
import { Scene } from './support/scene.js';

const MAX_REQUEST_SIZE = 200_000;
const LONGEST_TARGET = 8 * 1024;

// The first step of the request's way; those that follow are in proxy.test.ts.
describe('a request on /v1: 1 shape', () => {
  let scene: Scene;

  before(async () => {
    scene = await Scene.open({ MAX_REQUEST_SIZE: '200KB' });
  });
  beforeEach(() => scene.begin());
  afterEach(() => scene.end());
  after(() => scene.close());

  const get = (fields: Fields, target = '/v1/models') => head(`GET ${target}`, scene.secret, fields);
  const targeting = (target: string) => get({}, target);

  function refuses(what: string, expected: Expected, request: () => string): void {
    it(`refuses ${what} with ${expected.status} and spends nothing`, async () => {
      expectRefusal(await scene.send(request()), expected);
      await scene.expectSpent(0);
    });
  }

  describe('the target', () => {
    for (const target of [
      '/v1/../manage/tokens',
      '/v1/./models',
      '/v1/models/..',
      '/v1/%2e%2E/manage',
      '/v1/.%2e/manage',
      '/v1/..;/manage',
      '/v1//models',
      '/v1/files\\..\\models',
      '/v1/models#top',
      '/v1/%zz',
      '/v1/caf\xe9',
      '//provider.example/v1/models',
      'http://provider.example/v1/models',
      'provider.example:80',
      '*',
    ]) {
      refuses(target, MALFORMED, () => targeting(target));
    }
    refuses('one longer than 8 KiB', URI_TOO_LONG, () => targeting('/v1/'.padEnd(LONGEST_TARGET + 1, 'a')));
    refuses('one that alone fills the head', URI_TOO_LONG, () => targeting('/v1/'.padEnd(60_000, 'a')));

    it('may have 8 KiB', async () => {
      const answer = await scene.send(targeting('/v1/models?'.padEnd(LONGEST_TARGET, 'a')));
      expect(answer.status).to.equal(200);
    });
  });

  describe('the method and the version', () => {
    refuses('a method in lower case', MALFORMED, () => head('get /v1/models', scene.secret));
    refuses('TRACE', METHOD_NOT_ALLOWED, () => head('TRACE /v1/models', scene.secret));
    refuses('CONNECT', METHOD_NOT_ALLOWED, () => head('CONNECT provider.example:443', scene.secret));
    for (const version of ['0.9', '1.2', '2.0']) {
      refuses(`HTTP/${version}`, VERSION_NOT_SUPPORTED, () => get({}).replace('HTTP/1.1', `HTTP/${version}`));
    }

    it('names the methods there are in a 405', async () => {
      for (const method of ['TRACE', 'CONNECT']) {
        const answer = await scene.send(head(`${method} /v1/models`, scene.secret));
        expect(answer.header('allow')).to.equal('GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS');
      }
    });

    it('survives a CONNECT whose sender resets the connection', async () => {
      const client = await scene.client(head('CONNECT provider.example:443', scene.secret));
      await client.seen('method_not_allowed');
      client.socket.resetAndDestroy();
      await client.closed;
      expect((await scene.get()).status).to.equal(200);
    });

    it('answers a request of HTTP/1.0', async () => {
      const client = await scene.client(get({}).replace('HTTP/1.1', 'HTTP/1.0'));
      const answer = await client.answer();
      expect(answer.status).to.equal(200);
      expect(answer.header('transfer-encoding')).to.equal(undefined);
      await client.closed;
    });

    for (const target of ['/v1/models', '*']) {
      it(`answers OPTIONS ${target} with 204, with a secret and without, and neither passes it on nor counts it`, async () => {
        expect((await scene.send(head(`OPTIONS ${target}`, null))).status).to.equal(204);
        expect((await scene.send(head(`OPTIONS ${target}`, scene.secret))).status).to.equal(204);
        await scene.expectSpent(0);
      });
    }
  });

  describe('the headers', () => {
    refuses('a missing Host', MALFORMED, () => get({ Host: [] }));
    refuses('two Hosts', MALFORMED, () => get({ Host: ['a', 'b'] }));
    refuses('a Host with more in it than a host', MALFORMED, () => get({ Host: 'user@llmp.test/v1' }));
    refuses('two Authorizations', MALFORMED, () => get({ Authorization: [`Bearer ${scene.secret}`, 'Bearer other'] }));
    refuses('a folded header', MALFORMED, () => get({ 'X-A': 'b\r\n c' }));
    refuses('a bare LF in the head', MALFORMED, () => get({ 'X-A': 'b\nX-C: d' }));
    refuses('a NUL in a header', MALFORMED, () => get({ 'X-A': 'b\0' }));
    refuses('white space before the colon', MALFORMED, () => get({ 'X-A ': 'b' }));
    refuses('101 of them', HEADERS_TOO_LARGE, () => get({ 'X-A': Array<string>(99).fill('b') }));
    refuses('2,000 with the secret in the last', HEADERS_TOO_LARGE, () =>
      head('GET /v1/models', null, { 'X-A': Array<string>(2000).fill('b'), Authorization: `Bearer ${scene.secret}` }),
    );
    refuses('more than 32 KiB of them', HEADERS_TOO_LARGE, () => get({ 'X-A': 'b'.repeat(32 * 1024) }));
    refuses('far more than 32 KiB of them', HEADERS_TOO_LARGE, () => get({ 'X-A': 'b'.repeat(60_000) }));
    refuses('an Expect other than 100-continue', EXPECTATION_FAILED, () => scene.post({ Expect: '200-ok' }));

    it('may be 100', async () => {
      expect((await scene.send(get({ 'X-A': Array<string>(98).fill('b') }))).status).to.equal(200);
    });

    it('keep a request id of the right form; any other is replaced', async () => {
      const idFor = async (given: string) => (await scene.get(null, { 'X-Request-ID': given })).json.request_id;
      expect(await idFor('my-id_1')).to.equal('my-id_1');
      for (const given of ['', 'a'.repeat(65), 'a b', 'a\x1b[2J', '<id>']) {
        expect(await idFor(given), JSON.stringify(given)).to.match(/^[0-9a-f-]{36}$/);
      }
    });

    it('have ten seconds to arrive, from the beginning of the connection on', async () => {
      const { server } = scene.daemon.daemon;
      const shipped = server.headersTimeout;
      expect(shipped).to.equal(10_000);
      server.headersTimeout = 50; // Node keeps this time itself: it cannot be moved.
      try {
        for (const client of [await scene.client('GET /v1/models HTTP/1.1\r\nX-Slow: '), await scene.client()]) {
          expectRefusal(await client.answer(), REQUEST_TIMEOUT);
          await client.closed;
        }
      } finally {
        server.headersTimeout = shipped;
      }
    });
  });

  describe('the framing', () => {
    refuses('a length beside a transfer coding', MALFORMED, () =>
      scene.post({ 'Content-Length': '5', 'Transfer-Encoding': 'chunked' }, LAST_CHUNK),
    );
    refuses('two lengths', MALFORMED, () => scene.post({ 'Content-Length': ['2', '3'] }, 'ab'));
    refuses('one length twice', MALFORMED, () => scene.post({ 'Content-Length': ['2', '2'] }, 'ab'));
    refuses('a length with a sign', MALFORMED, () => scene.post({ 'Content-Length': '+2' }, 'ab'));
    refuses('a length beyond all numbers', MALFORMED, () => scene.post({ 'Content-Length': '9'.repeat(20) }));
    refuses('a transfer coding in HTTP/1.0', MALFORMED, () =>
      scene.post({ 'Transfer-Encoding': 'chunked' }, LAST_CHUNK).replace('HTTP/1.1', 'HTTP/1.0'),
    );
    refuses('a broken chunk', MALFORMED, () => scene.post({ 'Transfer-Encoding': 'chunked' }, 'zz\r\n'));
    for (const coding of ['gzip, chunked', 'gzip', 'identity']) {
      refuses(`Transfer-Encoding: ${coding}`, CODING_NOT_SUPPORTED, () =>
        scene.post({ 'Transfer-Encoding': coding }, LAST_CHUNK),
      );
    }

    it('answers 400 to a broken chunk behind a good one, and aborts the upstream request', async () => {
      const client = await scene.client(scene.post({ 'Transfer-Encoding': 'chunked' }, chunk('good')));
      await scene.reached();
      client.send('zz\r\nbad\r\n');
      expectRefusal(await client.answer(), MALFORMED);
      await client.closed;
      await scene.aborted();
      expect(await scene.onlyEnd()).to.include({ status: 400, outcome: 'refused', code: 'malformed_request' });
    });

    it('answers what was asked before the garbage, then 400, and closes', async () => {
      const client = await scene.client(`${get({})}${get({})}\0 garbage`);
      expect((await client.answer()).status).to.equal(200);
      expect((await client.answer()).status).to.equal(200);
      expectRefusal(await client.answer(), MALFORMED);
      await client.closed;
    });

    refuses('a declared length over MAX_REQUEST_SIZE', BODY_TOO_LARGE, () =>
      scene.post({ 'Content-Length': String(MAX_REQUEST_SIZE + 1) }),
    );
  });

  it('is looked at before the credential', async () => {
    expectRefusal(await scene.get('not-a-secret', { Host: [] }), MALFORMED);
    await eventually('the end is known', () => scene.daemon.ended[0]?.outcome === 'refused');
  });
});
