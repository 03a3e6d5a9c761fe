/** Only complete responses are stored, and none that is too large, whatever the upstream or the client does. */
import { expect } from 'chai';
import type { WireCachePurged } from '../../daemon/api/contract.js';
import { TestClock } from '../support/clock.js';
import { eventually } from '../support/eventually.js';
import { bodyOf } from '../support/management.js';
import { type Fields, head, type RawResponse, type RawClient } from '../support/raw.js';
import { staged } from './support/fault-fixture.js';
import type { Exchange } from './support/upstream.js';

const REQUEST_TIMEOUT_MS = 60_000;
const MOST_BYTES = 256 * 1024;
const MIB = 1024 * 1024;
const OPTED_IN: Fields = { 'Cache-Control': 'public' };
const OK = 'HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\n';

describe('G: only complete responses are stored', function () {
  this.timeout(60_000);
  const clock = new TestClock({ standsStill: true });
  const { stage, it } = staged({
    env: {
      HTTP_CACHE_ENABLED: 'true',
      HTTP_CACHE_MAX_OBJECT_BYTES: String(MOST_BYTES),
      REQUEST_TIMEOUT: `${REQUEST_TIMEOUT_MS}ms`,
    },
    clock,
  });

  const cacheOf = (answer: RawResponse) => answer.header('x-proxy-cache');
  const get = (target = '/v1/w') => stage.ask(head(`GET ${target}`, stage.secret));
  const answering = (body: string) => {
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      exchange.respond(200, 'Cache-Control: max-age=600\r\n', body);
    };
  };
  const asks: Record<string, () => string> = {
    GET: () => head('GET /v1/w', stage.secret),
    'an opted-in POST': () => stage.post('{}', OPTED_IN, '/v1/w'),
  };
  const expectNothingKept = async (bytes: string) => {
    answering('another');
    const after = await stage.ask(bytes);
    expect([cacheOf(after), after.text]).to.deep.equal(['miss', 'another']);
  };
  const gone = (client: RawClient) =>
    eventually('its client is gone', () => client.isClosed && stage.serverSocketIfAny(client) === undefined);

  describe('a response that is cut short', () => {
    const CUT: Record<string, string> = {
      'of a stated length': `${OK}Content-Length: 10\r\n\r\n12345`,
      'of a stated length, without a byte': `${OK}Content-Length: 10\r\n\r\n`,
      'within a chunk': `${OK}Transfer-Encoding: chunked\r\n\r\na\r\n12345`,
      'within the size of a chunk': `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n1`,
      'between chunks': `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n`,
      'within the last chunk': `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n`,
      'within the trailers': `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\nX-T: 1\r\n`,
      'with a length and "close"': `${OK}Connection: close\r\nContent-Length: 10\r\n\r\n12345`,
      'of HTTP/1.0 with a length': `${OK.replace('1.1', '1.0')}Content-Length: 10\r\n\r\n12345`,
    };
    const ENDS: Record<string, (exchange: Exchange) => void> = {
      'is closed': (exchange) => {
        exchange.fin();
      },
      'is reset': (exchange) => {
        exchange.rst();
      },
      'falls silent': () => {
        clock.advance(REQUEST_TIMEOUT_MS + 100);
      },
    };
    for (const [where, bytes] of Object.entries(CUT)) {
      for (const [how, end] of Object.entries(ENDS)) {
        for (const [what, ask] of Object.entries(asks)) {
          it(`G12 a response ${where} whose connection ${how} is not stored: ${what}`, async () => {
            stage.upstream.script = async (exchange) => {
              await exchange.whole();
              exchange.send(bytes);
            };
            const client = await stage.client(ask());
            await client.seen('\r\n\r\n');
            if (bytes.includes('12345')) await client.seen('12345');
            const only = await stage.ask(head('GET /v1/w', stage.secret, { 'Cache-Control': 'only-if-cached' }));
            expect(only.status, 'no partial entry is visible').to.equal(504);
            end(await stage.upstream.only());
            await gone(client);
            await expectNothingKept(ask());
          });
        }
      }
    }

    for (const [what, bytes] of Object.entries({
      'HTTP/1.1': `${OK}\r\nall of it`,
      'HTTP/1.1 with "close"': `${OK}Connection: close\r\n\r\nall of it`,
      'HTTP/1.0': `${OK.replace('1.1', '1.0')}\r\nall of it`,
    })) {
      it(`G12 a response that is delimited only by the end of its connection is forwarded and not stored: ${what}`, async () => {
        stage.upstream.script = (exchange) => {
          exchange.send(bytes);
          exchange.fin();
        };
        expect((await get()).text).to.equal('all of it');
        await expectNothingKept(asks.GET?.() ?? '');
      });
    }

    for (const [what, bytes] of Object.entries({
      'two lengths': `${OK}Content-Length: 4\r\nContent-Length: 5\r\n\r\n12345`,
      'a length and chunks': `${OK}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n1234\r\n0\r\n\r\n`,
      'a transfer coding that was not requested': `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n4\r\n1234\r\n0\r\n\r\n`,
    })) {
      it(`G12 a response with ${what} is not stored`, async () => {
        stage.upstream.script = (exchange) => {
          exchange.send(bytes);
          exchange.fin();
        };
        const client = await stage.client(asks.GET?.());
        await client.response().catch(() => undefined);
        await expectNothingKept(asks.GET?.() ?? '');
      });
    }
  });

  describe('a client that disconnects', () => {
    const begin = async (framing = 'Content-Length: 10\r\n\r\n12345') => {
      stage.upstream.script = (exchange) => {
        exchange.send(OK + framing);
      };
      const client = await stage.client(asks.GET?.());
      await client.seen('12345');
      const exchange = await stage.upstream.only();
      client.destroy();
      await eventually('it is recorded', () => stage.daemon.ended.length === 1);
      return exchange;
    };

    it('G13 the client disconnects during a response: the response is completed without the client and stored', async () => {
      const exchange = await begin();
      exchange.send('67890');
      await eventually('it is stored', async () => cacheOf(await get()) === 'hit');
      expect((await get()).text).to.equal('1234567890');
      expect(stage.daemon.ended[0]).to.include({ outcome: 'client_closed', cache: 'miss' });
      expect(await stage.uses()).to.equal(1);
    });

    for (const how of ['fin', 'rst'] as const) {
      it(`G13 the client disconnects, then the upstream breaks off: nothing is stored (${how})`, async () => {
        const exchange = await begin();
        exchange[how]();
        await exchange.closed();
        await expectNothingKept(asks.GET?.() ?? '');
      });
    }

    it('G13 the client disconnects, then the upstream is silent: the request is aborted after REQUEST_TIMEOUT', async () => {
      const exchange = await begin();
      clock.advance(REQUEST_TIMEOUT_MS / 2);
      expect(exchange.isClosed).to.equal(false);
      clock.advance(REQUEST_TIMEOUT_MS);
      await exchange.closed();
      await expectNothingKept(asks.GET?.() ?? '');
    });

    it('G13 the client disconnects, then its token is revoked: the upstream request is aborted at once', async () => {
      const exchange = await begin();
      await stage.daemon.manage('DELETE', `/manage/tokens/${stage.token.id}`);
      await exchange.closed();
      stage.token = await stage.issue();
      await expectNothingKept(asks.GET?.() ?? '');
    });

    it('G13 the client disconnects, then the response grows too large: the upstream request is aborted at once', async () => {
      const exchange = await begin('Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n');
      const piece = `${MOST_BYTES.toString(16)}\r\n${'x'.repeat(MOST_BYTES)}\r\n`;
      exchange.send(piece);
      await exchange.closed();
      await expectNothingKept(asks.GET?.() ?? '');
    });

    it('G13 the client disconnects during a response that will not be stored: the upstream request is aborted at once', async () => {
      stage.upstream.script = (exchange) => {
        exchange.send('HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 10\r\n\r\n12345');
      };
      const client = await stage.client(asks.GET?.());
      await client.seen('12345');
      client.destroy();
      await (await stage.upstream.only()).closed();
    });

    it('G13 the client disconnects before the response begins: the upstream request is aborted at once, and nothing is stored', async () => {
      stage.upstream.script = () => undefined;
      const client = await stage.client(asks.GET?.());
      const exchange = await stage.upstream.only();
      client.destroy();
      await exchange.closed();
      await expectNothingKept(asks.GET?.() ?? '');
    });
  });

  describe('a response of the maximum size', () => {
    const framed: Record<string, (body: string) => string> = {
      'with Content-Length': (body) => `Content-Length: ${body.length}\r\n\r\n${body}`,
      'in one chunk': (body) => `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      'in chunks': (body) =>
        `Transfer-Encoding: chunked\r\n\r\n3\r\n${body.slice(0, 3)}\r\n${(body.length - 3).toString(16)}\r\n${body.slice(3)}\r\n0\r\n\r\n`,
    };
    for (const [how, frame] of Object.entries(framed)) {
      for (const [size, expected] of [
        [MOST_BYTES - 1, 'hit'],
        [MOST_BYTES, 'hit'],
        [MOST_BYTES + 1, 'miss'],
        [MOST_BYTES * 3, 'miss'],
      ] as const) {
        it(`G14 a response ${how}, ${size - MOST_BYTES} bytes above the maximum size: its repetition is a ${expected}`, async () => {
          stage.upstream.script = (exchange) => {
            exchange.send(OK + frame('b'.repeat(size)));
          };
          const first = await get();
          expect(first.body.length).to.equal(size);
          const second = await get();
          expect([cacheOf(second), second.body.length]).to.deep.equal([expected, size]);
        });
      }
    }

    it('G14 a response of unknown length far above the maximum: only the maximum size is held', async () => {
      const bytes = 200 * MIB;
      stage.upstream.script = async (exchange) => {
        exchange.send(`${OK}Transfer-Encoding: chunked\r\n\r\n${bytes.toString(16)}\r\n`);
        await exchange.pump(bytes);
        exchange.send('\r\n0\r\n\r\n');
      };
      const client = await stage.client(asks.GET?.());
      client.discard();
      const before = process.memoryUsage().rss;
      let most = 0;
      await eventually(
        'everything has arrived',
        () => {
          most = Math.max(most, process.memoryUsage().rss - before);
          return client.socket.bytesRead > bytes;
        },
        30_000,
      );
      expect(most, 'bytes of memory').to.be.below(100 * MIB);
      await expectNothingKept(asks.GET?.() ?? '');
    });

    it('G14 many responses that are captured at a time take up to 49 MiB together', async () => {
      const [count, halves] = [300, [] as Exchange[]];
      const half = Buffer.alloc(MOST_BYTES - 1, 'b');
      stage.upstream.script = (exchange) => {
        exchange.send(`${OK}Content-Length: ${MOST_BYTES}\r\n\r\n`);
        exchange.send(half);
        halves.push(exchange);
      };
      const clients: RawClient[] = [];
      for (let i = 0; i < count; i++) {
        const client = await stage.client(head(`GET /v1/many/${i}`, stage.secret));
        client.discard();
        clients.push(client);
      }
      await eventually(
        'all have nearly everything',
        () => clients.every(({ socket }) => socket.bytesRead >= half.length),
        20_000,
      );
      for (const exchange of halves) exchange.send('b');
      await eventually(
        'all have everything',
        () => clients.every(({ socket }) => socket.bytesRead > MOST_BYTES) && stage.daemon.ended.length === count,
        20_000,
      );
      const purge = stage.daemon.manage('POST', '/manage/cache/purge', { all: true, dry_run: true });
      const { purged_count: kept } = await bodyOf<WireCachePurged>(purge);
      expect(kept * MOST_BYTES).to.be.within(40 * MIB, 50 * MIB);
    });
  });
});
