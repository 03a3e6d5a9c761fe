import { expect } from 'chai';
import type { WireCache } from '../../daemon/api/contract.js';
import { eventually } from '../support/eventually.js';
import { head } from '../support/raw.js';
import { staged } from './support/stage.js';

// More than the kernel takes in on the way.
const BODY = Buffer.alloc(16_000_000, 'x');
// What the daemon holds for clients that do not read is 64 MiB and one answer as large as may be. Beside so many no other one is kept.
const HITS = 5;
const READERS = 7;

describe('G: clients that do not read what is in the cache', function () {
  this.timeout(60_000); // Some hundred megabytes go over loopback.
  const { stage, it } = staged({
    env: { HTTP_CACHE_ENABLED: 'true', HTTP_CACHE_MAX_BYTES: '17MB', HTTP_CACHE_MAX_OBJECT_BYTES: '16500000' },
  });

  it('G13 G14 hold so much memory and no more: then the upstream is asked, which waits for them', async () => {
    stage.upstream.script = (exchange) => {
      exchange.send(`HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: ${BODY.length}\r\n\r\n`);
      exchange.send(BODY);
    };
    const hits = async () => ((await stage.daemon.manage('GET', '/manage/cache')).body as WireCache).hits;
    /** Has the only answer there is room for kept, and asks for it without reading it. */
    const stall = async (target: string) => {
      await stage.ask(head(`GET ${target}`, stage.secret));
      const [before, asked] = [await hits(), stage.upstream.exchanges.length];
      const client = await stage.client();
      client.socket.pause();
      client.send(head(`GET ${target}`, stage.secret));
      clients.push(client);
      const isHit = async () => (await hits()) > before;
      const isMiss = () => stage.upstream.exchanges.length > asked;
      await eventually('it is answered, or the upstream asked', async () => (await isHit()) || isMiss());
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
