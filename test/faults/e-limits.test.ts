import { expect } from 'chai';
import { gzipSync } from 'node:zlib';
import { mintSecret } from '../../daemon/core/token.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { TestClock } from '../support/clock.js';
import { eventually } from '../support/eventually.js';
import { chunk, head, LAST_CHUNK, type RawResponse, type RawClient } from '../support/raw.js';
import { BODY_TOO_LARGE, expectRefusal, UNAUTHORIZED } from '../support/refusals.js';
import { staged } from './support/fault-fixture.js';

const MOST = 100_000;

describe('E: limits', () => {
  const { stage, it } = staged({ env: { MAX_REQUEST_SIZE: '100KB' } });

  const declared = (length: number) => stage.post('', { 'Content-Length': String(length) });

  it('E01 a body of exactly MAX_REQUEST_SIZE is forwarded byte for byte', async () => {
    const body = 'x'.repeat(MOST - 1) + 'y';
    expect((await stage.ask(declared(MOST) + body)).status).to.equal(200);
    const { request } = await stage.upstream.only();
    expect(request.body.equals(Buffer.from(body))).to.equal(true);
  });

  it('E01 a Content-Length of one byte more gets 413 before the body is read, and nothing reaches the upstream', async () => {
    expectRefusal(await stage.ask(declared(MOST + 1)), BODY_TOO_LARGE);
    await stage.expectNothingSpent();
  });

  it('E02 a chunked body of exactly MAX_REQUEST_SIZE is forwarded', async () => {
    const body = chunk('x'.repeat(MOST - 1)) + chunk('y') + LAST_CHUNK;
    expect((await stage.ask(stage.post('', { 'Transfer-Encoding': 'chunked' }) + body)).status).to.equal(200);
    expect((await stage.upstream.only()).request.body).to.have.lengthOf(MOST);
  });

  it('E02 a chunked body of one byte more: the upstream request is aborted, not completed, and the client gets 413', async () => {
    const client = await stage.client(stage.post('', { 'Transfer-Encoding': 'chunked' }));
    client.send(chunk('x'.repeat(MOST)));
    const exchange = await stage.upstream.only();
    await eventually('all permitted bytes have arrived', () => exchange.request.body.length === MOST);
    client.send(chunk('y') + LAST_CHUNK);
    expectRefusal(await client.response(), BODY_TOO_LARGE);
    await exchange.closed();
    expect(exchange.request).to.include({ isComplete: false });
    expect(exchange.request.body.toString()).to.equal('x'.repeat(MOST));
    expect(await stage.onlyRecord()).to.include({ outcome: 'refused', status: 413 });
    expect(await stage.uses(), 'uses: it was forwarded').to.equal(1);
  });

  it('E06 a compressed body is limited by its bytes on the wire and forwarded unchanged', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * MOST));
    expect(bomb.length).to.be.below(MOST);
    const fields = { 'Content-Encoding': 'gzip', 'Content-Type': 'application/json' };
    const request = head('POST /v1/echo', stage.secret, { ...fields, 'Content-Length': String(bomb.length) });
    expect((await stage.ask(Buffer.concat([Buffer.from(request), bomb]))).status).to.equal(200);
    const exchange = await stage.upstream.only();
    expect(exchange.request.body.equals(bomb), 'byte for byte').to.equal(true);
    expect(exchange.all('content-encoding')).to.deep.equal(['gzip']);
  });

  describe('E07 nothing parses a body on /v1 before it is forwarded:', () => {
    const TYPES = ['application/json', 'application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data'];
    for (const type of TYPES) {
      it(`E07 an invalid ${type} body is forwarded unchanged`, async () => {
        const body = '{"model": &&& not what it says\u0000';
        expect((await stage.ask(stage.post(body, { 'Content-Type': type }))).status).to.equal(200);
        expect((await stage.upstream.only()).request.body.toString('latin1')).to.equal(body);
      });

      it(`E07 a chunked ${type} body is forwarded as it arrives`, async () => {
        const fields = { 'Content-Type': type, 'Transfer-Encoding': 'chunked' };
        const client = await stage.client(stage.post('', fields) + chunk('{"a":'));
        const exchange = await stage.upstream.only();
        await eventually('the beginning has arrived', () => exchange.request.body.toString() === '{"a":');
        client.send(chunk('1}') + LAST_CHUNK);
        expect((await client.response()).status).to.equal(200);
        expect(exchange.request.body.toString()).to.equal('{"a":1}');
      });
    }
  });

  describe('E08 hostile JSON', () => {
    const manage = (body: string) =>
      head('POST /manage/projects', MANAGEMENT_TOKEN, {
        'Content-Type': 'application/json',
        'Content-Length': String(Buffer.byteLength(body)),
      }) + body;
    const keys = (count: number) => `{${Array.from({ length: count }, (_, i) => `"k${i}":${i}`).join()}}`;
    const BODIES: Record<string, { status: number; body: string }> = {
      'arrays a hundred thousand deep': { status: 413, body: '['.repeat(100_000) + ']'.repeat(100_000) },
      'arrays of the maximum depth': { status: 400, body: '['.repeat(32_000) + ']'.repeat(32_000) },
      'objects of the maximum depth': { status: 400, body: '{"a":'.repeat(10_000) + '1' + '}'.repeat(10_000) },
      'a million keys': { status: 413, body: keys(1_000_000) },
      'the maximum number of keys': { status: 400, body: keys(5_000) },
      'one key, many times': { status: 400, body: `{${'"name":1,'.repeat(6_000)}"name":"x"}` },
      'a long list': { status: 400, body: `[${'1,'.repeat(32_000)}1]` },
      'many escapes': { status: 400, body: `["${'\\\\'.repeat(32_000)}"]` },
      'a fraction with many zeros': { status: 400, body: `[0.${'0'.repeat(64_000)}1]` },
      'a long number': { status: 400, body: `{"name":${'9'.repeat(60_000)}}` },
      ['__proto__']: { status: 400, body: '{"name":"x","api_key":"key","__proto__":{"is_active":true}}' },
      'constructor.prototype': {
        status: 400,
        body: '{"name":"x","api_key":"key","constructor":{"prototype":{"y":1}}}',
      },
    };
    for (const [what, { status, body }] of Object.entries(BODIES)) {
      it(`E08 ${what} on /manage is refused with ${status} and delays no other request`, async () => {
        // Measured in CPU time, because other programs may use the machine.
        const waits: number[] = [];
        for (let round = 0; round < 5; round++) {
          const bystander = await stage.client();
          const sender = await stage.client(manage(body));
          const askedAt = process.cpuUsage();
          bystander.send('GET /live HTTP/1.1\r\nHost: llmp.test\r\n\r\n');
          expect((await bystander.response()).status).to.equal(200);
          const { user, system } = process.cpuUsage(askedAt);
          waits.push((user + system) / 1000);
          const answer = await sender.response();
          expect(answer.status).to.equal(status);
          expect(answer.json).to.have.all.keys('error', 'code', 'request_id');
          expect(answer.body.length, 'bytes of the response').to.be.below(64 * 1024);
        }
        expect(Math.min(...waits), 'ms until another client got its response').to.be.below(50);
        expect(Object.keys(Object.prototype)).to.deep.equal([]);
        expect((await stage.daemon.manage('GET', '/manage/projects')).body).to.have.lengthOf(1);
      });
    }
  });
});

describe('E: a client that sends on without reading', () => {
  // The clock stands still, so no timeout ends the reading after a response.
  const { stage, it } = staged({ env: { MAX_REQUEST_SIZE: '100KB' }, clock: new TestClock({ standsStill: true }) });
  const PIECE = 'x'.repeat(64 * 1024);
  // More than the kernel buffers.
  const PIECES = 1000;
  const CHUNKED = { 'Transfer-Encoding': 'chunked' };

  /** Sends all pieces, and reads the response only then. */
  async function answerAfterAll(client: RawClient, piece: string): Promise<RawResponse> {
    client.socket.pause();
    for (let i = 0; i < PIECES; i++) client.send(piece);
    await eventually('the rest has been read', () => client.socket.writableLength === 0, 15_000);
    client.socket.resume();
    return client.response();
  }

  it('E03 the client can read the 413 for a Content-Length that is too large', async () => {
    const client = await stage.client(stage.post('', { 'Content-Length': String(PIECES * PIECE.length) }));
    expectRefusal(await answerAfterAll(client, PIECE), BODY_TOO_LARGE);
    await stage.expectNothingSpent();
  });

  it('E03 the client can read the 413 for a chunked body that becomes too large', async () => {
    const client = await stage.client(stage.post('', CHUNKED));
    expectRefusal(await answerAfterAll(client, chunk(PIECE)), BODY_TOO_LARGE);
    // Nothing was sent if too much arrived at once.
    const [exchange] = stage.upstream.exchanges;
    await exchange?.closed();
    expect(exchange?.request.isComplete ?? false).to.equal(false);
  });

  it('E03 the client can read a 413 that the upstream sent before the upload ended', async () => {
    stage.upstream.script = (exchange) => {
      exchange.respond(413);
    };
    const client = await stage.client(stage.post('', CHUNKED) + chunk('the beginning'));
    await client.seen('413');
    expect((await answerAfterAll(client, chunk(PIECE))).status).to.equal(413);
    await (await stage.upstream.only()).closed();
  });

  it('E03 the client can read the 401 for an unknown token', async () => {
    const client = await stage.client(head('POST /v1/echo', mintSecret(), CHUNKED));
    expectRefusal(await answerAfterAll(client, chunk(PIECE)), UNAUTHORIZED);
    await stage.expectNothingSpent();
  });
});
