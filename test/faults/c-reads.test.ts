import type { Socket } from 'node:net';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { Authority } from '../support/certificates.js';
import { trustTestNames } from '../support/network-overrides.js';
import type { RawClient } from '../support/raw.js';
import { staged } from './support/fault-fixture.js';
import type { Exchange } from './support/upstream.js';

const CLIENTS = 8;
const REQUESTS = 6;
const PIECE_BYTES = 64 * 1024;
/** Bytes of the pieces in which the upstream sends: on both sides of the sizes at which the memory for reads changes. */
const PIECES = [1, 60, 700, 2_000, 4_095, 4_096, 4_097, 8_192, 9_000, 65_536, 70_000];

const bodyOf = (target: string, length: number) => Buffer.alloc(length, `${target} `);

describe('C: responses that are read from several connections', () => {
  const name = 'provider.test';
  const authority = new Authority();
  trustTestNames(authority.certificate);

  const toName = (url: string) => url.replace('127.0.0.1', name);
  for (const [how, options] of Object.entries({
    'without TLS': {},
    'over TLS': { certificate: authority.issue({ name }), upstreamUrl: toName },
  })) {
    describe(how, () => {
      const { stage, it } = staged(options);

      it('C01 each client gets its own response unchanged, whatever the sizes of its pieces', async () => {
        const lengths = new Map<string, number>();
        let begun = 0;
        async function respond(exchange: Exchange): Promise<void> {
          const first = begun++;
          const sizes = PIECES.map((_, i) => PIECES[(first + i * 4) % PIECES.length]!).slice(0, 4 + (first % 4));
          const body = bodyOf(
            exchange.target,
            sizes.reduce((sum, size) => sum + size, 0),
          );
          lengths.set(exchange.target, body.length);
          exchange.send(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`);
          let sent = 0;
          for (const size of sizes) {
            await turn();
            exchange.send(body.subarray(sent, (sent += size)));
          }
        }
        stage.upstream.script = (exchange) => void respond(exchange);
        await Promise.all(
          Array.from({ length: CLIENTS }, async (_, client) => {
            for (let request = 0; request < REQUESTS; request++) {
              const target = `/v1/client-${client}/request-${request}`;
              const { status, body } = await stage.ask(stage.get({}, target));
              expect(status).to.equal(200);
              expect(body.equals(bodyOf(target, lengths.get(target)!)), target).to.equal(true);
            }
          }),
        );
        expect(stage.upstream.exchanges.filter(({ isReused }) => isReused)).to.have.length.above(CLIENTS);
      });

      /** Sends a response without a length, until the client's buffer is full. @returns the number of bytes of its body. */
      async function fillClient(exchange: Exchange, client: Socket): Promise<number> {
        exchange.send('HTTP/1.1 200 OK\r\n\r\n');
        let sent = 0;
        let taken = -1;
        // Full: for a while the kernel takes nothing of what waits for the client.
        for (let still = 0; still < 20;) {
          exchange.send(Buffer.alloc(PIECE_BYTES, 'x'));
          sent += PIECE_BYTES;
          await sleep(2);
          const now = client.bytesWritten - client.writableLength;
          still = client.writableLength > 0 && now === taken ? still + 1 : 0;
          taken = now;
        }
        return sent;
      }

      async function beginWithoutReading(): Promise<{ client: RawClient; exchange: Exchange; sent: number }> {
        stage.upstream.script = () => undefined;
        const served: Socket[] = [];
        stage.daemon.daemon.server.once('connection', (socket: Socket) => served.push(socket));
        const client = await stage.client(stage.get());
        client.socket.pause();
        const exchange = await stage.upstream.only();
        return { client, exchange, sent: await fillClient(exchange, served[0]!) };
      }

      it('C06 a response that ends with its connection is complete, although it ends while the client does not read', async () => {
        const { client, exchange, sent } = await beginWithoutReading();
        exchange.fin();
        await sleep(50);
        client.socket.resume();
        expect((await client.response()).body).to.have.lengthOf(sent);
      });

      // A TLS connection cannot be reset by Node.
      if ('certificate' in options) return;
      it('C06 a response that ends with its connection is cut, if that is reset while the client does not read', async () => {
        const { client, exchange } = await beginWithoutReading();
        exchange.send(Buffer.alloc(10 * PIECE_BYTES, 'y'));
        await sleep(50);
        exchange.rst();
        await sleep(50);
        client.socket.resume();
        await client.closed;
        expect(await client.response().catch(() => 'cut')).to.equal('cut');
      });
    });
  }
});
