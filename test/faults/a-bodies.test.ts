import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { mintSecret } from '../../daemon/core/token.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { chunk, type Fields, head, LAST_CHUNK, type RawClient } from '../support/raw.js';
import {
  BODY_TOO_LARGE,
  elsewhere,
  EXPECTATION_FAILED,
  expectRefusal,
  MALFORMED,
  REQUEST_TIMEOUT,
  UNAUTHORIZED,
} from '../support/refusals.js';
import { staged } from './support/fault-fixture.js';

const CHUNKED: Fields = { 'Transfer-Encoding': 'chunked' };
const SECOND_MS = 1000;

describe('A: bodies', () => {
  const { stage, it } = staged({ env: { MAX_REQUEST_SIZE: '200KB', CLIENT_BODY_TIMEOUT: '30s' } });

  describe('a broken chunk after a good one that the upstream already has', () => {
    const BROKEN: Record<string, string> = {
      'a size that is not a number': 'zz\r\nbad\r\n',
      'a size with 0x': '0x2\r\nab\r\n',
      'a size beyond 64 bits': '10000000000000002\r\nab\r\n',
      'more data than its size': '2\r\nabc\r\n',
      'data that ends with LF': '2\r\nab\n0\r\n\r\n',
      'LF in an extension': '2;a\nb\r\nab\r\n',
      'a trailer without a colon': '0\r\nno field\r\n\r\n',
    };
    for (const [what, broken] of Object.entries(BROKEN)) {
      it(`A10 ${what}: 400, the connection closes, and the upstream request is aborted`, async () => {
        const client = await stage.client(stage.post('', CHUNKED) + chunk('good'));
        const exchange = await stage.upstream.only();
        await eventually('the good chunk has arrived', () => exchange.request.body.toString() === 'good');
        client.send(broken + LAST_CHUNK + stage.get({}, '/v1/smuggled'));
        expectRefusal(await client.response(), MALFORMED);
        await client.closed;
        await exchange.closed();
        expect(client.pending.toString()).to.equal('');
        expect(exchange.request.isComplete, 'complete at the upstream').to.equal(false);
        expect(exchange.request.body.toString()).to.match(/^good(?:ab)?$/);
        expect(await stage.onlyRecord()).to.include({ status: 400, outcome: 'refused', code: 'malformed_request' });
      });
    }

    it('A10 a broken chunk while the response is being sent: the connection is cut, because an error text would look like part of the response', async () => {
      stage.upstream.script = (exchange) => {
        exchange.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf');
      };
      const client = await stage.client(stage.post('', CHUNKED) + chunk('good'));
      await client.seen('half');
      client.send('zz\r\n');
      await client.closed;
      expect(client.pending.toString()).to.match(/half$/);
      await (await stage.upstream.only()).closed();
    });

    it('A10 a broken chunk on /manage: 400, the connection closes, and nothing changes', async () => {
      const fields = { ...CHUNKED, 'Content-Type': 'application/json' };
      const client = await stage.client(
        head('POST /manage/projects', MANAGEMENT_TOKEN, fields) + chunk('{"name":"from a broken chunk",'),
      );
      client.send('zz\r\n');
      expectRefusal(await client.response(), elsewhere(MALFORMED));
      await client.closed;
      expect(client.pending.toString()).to.equal('');
      expect((await stage.daemon.manage('GET', '/manage/projects')).body).to.have.lengthOf(1);
    });
  });

  it('A11 chunk extensions of the maximum length do not reach the upstream, even with many chunks', async () => {
    const longest = 'x'.repeat(16_000);
    const body = 'abcdefghijklmnopqrstuvwxyz';
    const client = await stage.client(stage.post('', CHUNKED));
    for (const letter of body) client.send(`1;${longest}\r\n${letter}\r\n`);
    client.send(LAST_CHUNK);
    expect((await client.response()).status).to.equal(200);
    const { request } = await stage.upstream.only();
    expect(request.body.toString()).to.equal(body);
    expect(Buffer.concat(stage.upstream.received).length, 'bytes at the upstream').to.be.below(2_000);
  });

  describe('a body at one byte per ten seconds', () => {
    /** Sends a byte every ten seconds until the daemon responds. @returns the seconds that have passed. */
    async function trickle(client: RawClient): Promise<number> {
      const socket = stage.serverSocket(client);
      for (let seconds = 0; seconds < 600; seconds += 10) {
        if (client.pending.length > 0) return seconds;
        const before = socket.bytesRead;
        client.send('x');
        await eventually('the byte is read', () => socket.bytesRead > before || client.pending.length > 0);
        stage.daemon.clock.advance(10 * SECOND_MS);
        await turn();
      }
      throw new Error('read for ten minutes');
    }

    it('A21 a slow body that is buffered gets 408 within CLIENT_BODY_TIMEOUT, and no use is spent', async () => {
      const client = await stage.client(stage.post('', { 'Content-Length': '1000' }));
      await stage.inFlight(1);
      expect(await trickle(client)).to.be.within(30, 60);
      expectRefusal(await client.response(), REQUEST_TIMEOUT);
      expect(await stage.onlyRecord()).to.include({ status: 408, outcome: 'timeout' });
      await stage.expectNothingSpent();
    });

    it('A21 a body whose rest arrives after its 408 spends nothing, and the connection serves the next request', async () => {
      const client = await stage.client(stage.post('begin', { 'Content-Length': '10' }));
      await stage.inFlight(1);
      stage.daemon.clock.advance(30 * SECOND_MS);
      expectRefusal(await client.response(), REQUEST_TIMEOUT);
      client.send(`& end${stage.get()}`);
      expect((await client.response()).status).to.equal(200);
      expect(await stage.uses()).to.equal(1);
    });

    it('A21 a slow body that is streamed gets 408 within CLIENT_BODY_TIMEOUT: the upstream request is aborted, and the use stays counted', async () => {
      const client = await stage.client(stage.post('', { 'Content-Length': '150000' }) + 'beginning');
      const exchange = await stage.upstream.only();
      expect(await trickle(client)).to.be.within(30, 60);
      expectRefusal(await client.response(), REQUEST_TIMEOUT);
      await exchange.closed();
      expect(exchange.request.isComplete, 'complete at the upstream').to.equal(false);
      expect(await stage.onlyRecord()).to.include({ status: 408, outcome: 'timeout' });
      expect(await stage.uses()).to.equal(1);
    });

    it('A21 a body may take any time in all, if each KiB arrives within CLIENT_BODY_TIMEOUT', async () => {
      const client = await stage.client(stage.post('', { 'Content-Length': String(100 * 1024) }));
      await stage.inFlight(1);
      const arrived = () => stage.upstream.exchanges[0]?.request.body.length;
      for (let kib = 0; kib < 100; kib++) {
        client.send('x'.repeat(1024));
        await eventually('it has arrived', () => arrived() === (kib + 1) * 1024);
        if (kib < 99) stage.daemon.clock.advance(20 * SECOND_MS);
      }
      expect((await client.response()).status).to.equal(200);
      expect((await stage.upstream.only()).request.body).to.have.lengthOf(100 * 1024);
    });
  });

  describe('Expect: 100-continue', () => {
    const expecting = (fields: Fields = {}, secret = stage.secret) =>
      head('POST /v1/echo', secret, { Expect: '100-continue', 'Content-Length': '5', ...fields });

    it('A32 the client gets 100 when its request is admitted, and Expect is not forwarded', async () => {
      const client = await stage.client(expecting());
      expect(await client.response()).to.include({ status: 100 });
      await stage.expectNothingSpent();
      client.send('hello');
      expect((await client.response()).status).to.equal(200);
      const exchange = await stage.upstream.only();
      expect(exchange.request.body.toString()).to.equal('hello');
      expect(exchange.all('expect')).to.deep.equal([]);
    });

    it('A32 Expect works in any letter case, and if the client sends its body without waiting', async () => {
      const client = await stage.client(`${expecting({ Expect: '100-Continue' })}hello`);
      expect(await client.response()).to.include({ status: 100 });
      expect((await client.response()).status).to.equal(200);
      expect((await stage.upstream.only()).request.body.toString()).to.equal('hello');
    });

    it('A32 a bad token gets 401 without a 100, and the connection closes', async () => {
      const client = await stage.client(expecting({}, mintSecret()));
      expectRefusal(await client.response(), UNAUTHORIZED);
      await client.closed;
      await stage.expectNothingSpent();
    });

    it('A32 clients that send on after their refusal all get it, and all that they send is read', async () => {
      const body = Buffer.alloc(4 * 1024 * 1024, 'x');
      const refused = async () => {
        const client = await stage.client(
          head('POST /v1/echo', stage.secret, { 'Content-Length': String(body.length) }),
        );
        expectRefusal(await client.response(), BODY_TOO_LARGE);
        client.send(body);
        client.send(head('GET /live', null));
        expect((await client.response()).status).to.equal(200);
      };
      await Promise.all(Array.from({ length: 20 }, refused));
      await stage.expectNothingSpent();
    });

    it('A32 a body above the limit gets 413 without a 100, and the connection closes', async () => {
      const client = await stage.client(expecting({ 'Content-Length': '200001' }));
      expectRefusal(await client.response(), BODY_TOO_LARGE);
      await client.closed;
      await stage.expectNothingSpent();
    });

    for (const expectation of ['200-foo', '100-continue, 200-foo', 'x100-continue', '']) {
      it(`A33 any other expectation gets 417: '${expectation}'`, async () => {
        const client = await stage.client(expecting({ Expect: expectation }));
        expectRefusal(await client.response(), EXPECTATION_FAILED);
        await client.closed;
        expect(client.pending.toString()).to.equal('');
        await stage.expectNothingSpent();
      });
    }

    it('A33 another expectation gets 417 also in two headers, and outside of /v1', async () => {
      for (const [request, refused] of [
        [expecting({ Expect: ['100-continue', '200-foo'] }), EXPECTATION_FAILED],
        [head('GET /live', null, { Expect: '200-foo' }), elsewhere(EXPECTATION_FAILED)],
      ] as const) {
        const client = await stage.client(request);
        expectRefusal(await client.response(), refused);
        await client.closed;
      }
    });
  });
});
