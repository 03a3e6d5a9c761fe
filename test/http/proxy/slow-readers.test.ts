import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { MemoryBounds, memoryLimitOf } from '../../../daemon/http/server/memory-bounds.js';
import { createHttpServer } from '../../../daemon/http/server/server.js';
import { TestClock } from '../../support/clock.js';
import { recordingLog } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { head } from '../../support/raw.js';

const ANSWER_BYTES = 20e6;

describe('a client that reads its response slowly', () => {
  let server: Server;
  let clock: TestClock;
  let hasAnswered = false;

  before(async () => {
    clock = new TestClock();
    const { log } = recordingLog();
    server = createHttpServer({
      proxy: null,
      upgrades: null,
      clientRoutes: null,
      unknownPathErrors: null,
      app: (req, res) => {
        if (req.url === '/large') {
          hasAnswered = true;
          res.end(Buffer.alloc(ANSWER_BYTES, 'x'));
        } else {
          const endless = new Readable({ read: () => endless.push(Buffer.alloc(64 * 1024, 'x')) });
          endless.pipe(res);
        }
      },
      clock,
      log,
      bounds: new MemoryBounds(clock, memoryLimitOf({ clock, heap: { isFull: false }, log })),
      maxConnections: 10,
      isDraining: () => false,
      live: { current: { corsAllowedOrigins: undefined } },
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });

  it('is disconnected if it reads nothing of one that is piped and has no end', async () => {
    const connected = once(server, 'connection') as Promise<[Socket]>;
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
    const [served] = await connected;
    client.on('error', () => undefined).write(head('GET /endless', null));
    await eventually('it is disconnected', async () => {
      await sleep(10);
      for (let passedMs = 0; passedMs < 40_000; passedMs += 1_000) clock.advance(1_000);
      return served.destroyed;
    });
    client.destroy();
  });

  // A stopping daemon used to close the connection as soon as Node had the complete response, and the client lost the end of it.
  it('gets all of it while the daemon stops and closes idle connections', async () => {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    client.write(head('GET /large', null));
    await eventually('the response arrives', () => hasAnswered);
    const closed = once(server.close(), 'close');
    server.closeIdleConnections();
    let received = 0;
    client.on('data', (piece: Buffer) => {
      received += piece.length;
    });
    await eventually('all has arrived', () => received > ANSWER_BYTES || client.readyState === 'closed');
    expect(received).to.be.above(ANSWER_BYTES);
    server.closeIdleConnections();
    await closed;
  });
});
