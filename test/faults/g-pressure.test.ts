import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { head } from '../support/raw.js';
import { staged } from './support/stage.js';

const BODY = Buffer.alloc(9_000_000, 'x');
// More than the daemon holds for clients that do not read: 64 MiB and one answer as large as may be.
const READERS = 10;

describe('G: clients that do not read what is in the cache', () => {
  const { stage, it } = staged({
    env: { HTTP_CACHE_ENABLED: 'true', HTTP_CACHE_MAX_BYTES: '10MB', HTTP_CACHE_MAX_OBJECT_BYTES: '9500000' },
  });

  it('G13 G14 hold so much memory and no more: then the upstream is asked, which waits for them', async () => {
    stage.upstream.script = (exchange) => {
      exchange.send(`HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: ${BODY.length}\r\n\r\n`);
      exchange.send(BODY);
    };
    const { exchanges } = stage.upstream;
    /** Has the only answer there is room for kept, and asks for it without reading it. */
    const stall = async (target: string) => {
      await stage.ask(head(`GET ${target}`, stage.secret));
      const before = exchanges.length;
      const client = await stage.client();
      client.socket.pause();
      client.send(head(`GET ${target}`, stage.secret));
      await stage.inFlight(clients.length + 1);
      clients.push(client);
      return exchanges.length === before ? 'hit' : 'miss';
    };
    const clients: Awaited<ReturnType<typeof stage.client>>[] = [];
    const seen: string[] = [];
    for (let i = 0; i < READERS; i++) seen.push(await stall(`/v1/large/${i}`));
    expect(seen.slice(0, 8)).to.deep.equal(Array(8).fill('hit'));
    expect(seen.at(-1)).to.equal('miss');
    for (const client of clients.splice(0)) client.destroy();
    await eventually('they are gone', () => stage.daemon.daemon.admission.size.inFlight === 0);
    expect(await stall('/v1/large/again')).to.equal('hit');
  });
});
