import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect } from 'chai';
import { Bounds } from '../../../daemon/http/server/bounds.js';
import { createHttpServer } from '../../../daemon/http/server/server.js';
import { TestClock } from '../../support/clock.js';
import { recordingLog } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { head } from '../../support/raw.js';

const ANSWER_BYTES = 20e6;

// A stopping daemon closed the connection as soon as the whole answer was with Node, and the client lost the end of it.
describe('a client that reads its answer slowly', () => {
  let server: Server;
  let hasAnswered = false;

  before(async () => {
    const clock = new TestClock();
    const { log } = recordingLog();
    server = createHttpServer({
      proxy: null,
      upgrades: null,
      offPath: null,
      app: (_req, res) => {
        hasAnswered = true;
        res.end(Buffer.alloc(ANSWER_BYTES, 'x'));
      },
      clock,
      log,
      bounds: new Bounds({ clock, heap: { isFull: false }, log }),
      maxConnections: 10,
      isDraining: () => false,
      live: { current: { corsAllowedOrigins: undefined } },
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });

  it('gets all of it although the daemon stops meanwhile, and closes what is idle', async () => {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    client.write(head('GET /large', null));
    await eventually('it is answered', () => hasAnswered);
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
