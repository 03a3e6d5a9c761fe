import { expect } from 'chai';
import { staged } from './support/stage.js';

describe('C: what the upstream may do wrong', () => {
  const { stage, it } = staged();

  it('C03 destroys the client when the upstream ends in the middle of a declared length', async () => {
    stage.upstream.script = (exchange) => {
      exchange.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf');
      exchange.fin();
    };
    const client = await stage.client(stage.get());
    await client.closed;
    expect(client.pending.toString()).to.match(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nhalf$/);
    expect(await stage.onlyEnd()).to.include({ outcome: 'truncated', status: 200 });
  });
});
