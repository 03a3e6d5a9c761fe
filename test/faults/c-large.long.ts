import { expect } from 'chai';
import { staged } from './support/fault-fixture.js';

const BYTES = 1e9;
const MOST_MB = 200; // Memory of all three: the client, the daemon and the upstream are in this process.

const rssMb = () => process.memoryUsage().rss / 1e6;

describe('C: an upstream with a large response', () => {
  const { stage, it } = staged();

  for (const [what, framing] of Object.entries({
    'with a length': `Content-Length: ${BYTES}\r\n`,
    'that ends with its connection': '',
  })) {
    it(`C18 a response of 1 GB ${what} is forwarded to a fast client without buffering it, and is never cached`, async () => {
      stage.upstream.script = async (exchange) => {
        exchange.send(`HTTP/1.1 200 OK\r\n${framing}\r\n`);
        await exchange.pump(BYTES);
        if (framing === '') exchange.fin();
      };
      const client = await stage.client(stage.get({ Connection: 'close' }));
      await client.seen('\r\n\r\n');
      const before = rssMb();
      let peak = before;
      client.discard();
      client.socket.on('data', () => {
        peak = Math.max(peak, rssMb());
      });
      await client.closed;
      expect(client.socket.bytesRead).to.be.at.least(BYTES);
      expect(await stage.onlyRecord()).to.include({ outcome: 'ok', status: 200 });
      expect(peak - before, 'MB more than before').to.be.below(MOST_MB);
    }).timeout(300_000);
  }
});
