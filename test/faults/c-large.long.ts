import { expect } from 'chai';
import { staged } from './support/stage.js';

const BYTES = 1e9;
const MOST_MB = 200; // Of all three: the client, the daemon and the upstream live in one process here.

const rssMb = () => process.memoryUsage().rss / 1e6;

describe('C: an upstream whose answer is large', () => {
  const { stage, it } = staged();

  for (const [what, framing] of Object.entries({
    'with a length': `Content-Length: ${BYTES}\r\n`,
    'that ends with its connection': '',
  })) {
    it(`C18 a gigabyte ${what} passes through a fast client's connection, and is never kept`, async () => {
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
      expect(await stage.onlyEnd()).to.include({ outcome: 'ok', status: 200 });
      expect(peak - before, 'MB more than before').to.be.below(MOST_MB);
    }).timeout(300_000);
  }
});
