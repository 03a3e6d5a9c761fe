import { expect } from 'chai';
import type { WireCache } from '../../daemon/api/contract.js';
import { eventually } from '../support/eventually.js';
import { head } from '../support/raw.js';
import { staged } from './support/fault-fixture.js';

// More than the kernel buffers.
const BODY = Buffer.alloc(16_000_000, 'x');
// Once clients that do not read hold more than 64 MiB and one response of the maximum size, no more get a stored one.
const HITS = 6;
const READERS = 7;

describe('G: clients that do not read cached responses', function () {
  this.timeout(60_000); // Some hundred megabytes are sent over loopback.
  const { stage, it } = staged({
    env: { HTTP_CACHE_ENABLED: 'true', HTTP_CACHE_MAX_BYTES: '17MB', HTTP_CACHE_MAX_OBJECT_BYTES: '16500000' },
  });

  it('G13 G14 unread hits take bounded memory: above it, requests go upstream, which is paused', async () => {
    stage.upstream.script = (exchange) => {
      exchange.send(`HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: ${BODY.length}\r\n\r\n`);
      exchange.send(BODY);
    };
    const hits = async () => ((await stage.daemon.manage('GET', '/manage/cache')).body as WireCache).hits;
    /** Stores the only response that fits, and requests it without reading. */
    const stall = async (target: string) => {
      await stage.ask(head(`GET ${target}`, stage.secret));
      const [before, asked] = [await hits(), stage.upstream.exchanges.length];
      const client = await stage.client();
      client.socket.pause();
      client.send(head(`GET ${target}`, stage.secret));
      clients.push(client);
      const isHit = async () => (await hits()) > before;
      const isMiss = () => stage.upstream.exchanges.length > asked;
      await eventually('it gets a response, or goes upstream', async () => (await isHit()) || isMiss());
      return isMiss() ? 'miss' : 'hit';
    };
    const clients: Awaited<ReturnType<typeof stage.client>>[] = [];
    const seen: string[] = [];
    for (let i = 0; i < READERS; i++) seen.push(await stall(`/v1/large/${i}`));
    expect(seen).to.deep.equal([...Array<string>(HITS).fill('hit'), ...Array<string>(READERS - HITS).fill('miss')]);
    for (const client of clients.splice(0)) client.destroy();
    await eventually('they are gone', () => stage.daemon.daemon.admission.size.inFlight === 0);
    expect(await stall('/v1/large/again')).to.equal('hit');
  });
});
