import { expect } from 'chai';
import type { WireCache } from '../../daemon/api/contract.js';
import { eventually } from '../support/eventually.js';
import { head } from '../support/raw.js';
import { staged } from './support/fault-fixture.js';

// More than the kernel buffers.
const BODY = Buffer.alloc(16_000_000, 'x');
const READERS = 7;
// For clients and providers together, a process holds 48 MiB and one response of the maximum size.
const HELD = 4;

describe('G: clients that do not read cached responses', function () {
  this.timeout(60_000); // Some hundred megabytes are sent over loopback.
  const { stage, it } = staged({
    env: { HTTP_CACHE_ENABLED: 'true', HTTP_CACHE_MAX_BYTES: '17MB', HTTP_CACHE_MAX_OBJECT_BYTES: '16500000' },
  });

  it('G13 G14 unread hits take bounded memory: above it, those that have waited longest are cut off', async () => {
    stage.upstream.script = (exchange) => {
      exchange.send(`HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: ${BODY.length}\r\n\r\n`);
      exchange.send(BODY);
    };
    const hits = async () => ((await stage.daemon.manage('GET', '/manage/cache')).body as WireCache).hits;
    /** Stores the only response that fits, and requests it without reading. */
    const stall = async (target: string) => {
      await stage.ask(head(`GET ${target}`, stage.secret));
      const before = await hits();
      const client = await stage.client();
      client.socket.pause();
      client.send(head(`GET ${target}`, stage.secret));
      clients.push(client);
      await eventually('it gets a stored response', async () => (await hits()) > before);
    };
    const clients: Awaited<ReturnType<typeof stage.client>>[] = [];
    for (let i = 0; i < READERS; i++) await stall(`/v1/large/${i}`);
    await eventually('the first ones are cut off', () => stage.daemon.daemon.admission.size.inFlight <= HELD);
    expect(stage.daemon.daemon.admission.size.inFlight, 'those that are left').to.be.above(1);
    for (const client of clients.splice(0)) client.destroy();
    await eventually('they are gone', () => stage.daemon.daemon.admission.size.inFlight === 0);
    await stall('/v1/large/again');
  });
});
