import { once } from 'node:events';
import { expect } from 'chai';
import { WebSocket } from 'ws';
import { type StandIn, startStandIn } from '../../daemon/demo/provider.js';

const KEY = 'sk-stand-in';

describe("the demo's stand-in provider", () => {
  let standIn: StandIn;

  beforeEach(async () => {
    standIn = await startStandIn(KEY);
  });
  afterEach(() => standIn.stop());

  const realtime = (key: string, path = '/v1/realtime') =>
    new WebSocket(standIn.url.replace('http:', 'ws:') + path, { headers: { authorization: `Bearer ${key}` } });

  it('echoes text and binary messages on /v1/realtime', async () => {
    const client = realtime(KEY);
    await once(client, 'open');
    for (const [sent, isBinary] of [
      ['{"type":"response.create"}', false],
      [Buffer.from([0, 1, 255]), true],
    ] as const) {
      client.send(sent);
      const [received, wasBinary] = (await once(client, 'message')) as [Buffer, boolean];
      expect(received.equals(Buffer.from(sent))).to.equal(true);
      expect(wasBinary).to.equal(isBinary);
    }
    client.close();
    await once(client, 'close');
  });

  it('refuses another key on /v1/realtime, and another path', async () => {
    for (const [client, status] of [
      [realtime('sk-wt-forwarded-as-it-was'), 401],
      [realtime(KEY, '/v1/elsewhere'), 400],
    ] as const) {
      const [error] = (await once(client, 'error')) as [Error];
      expect(error.message).to.include(String(status));
    }
  });

  it('stops while a connection is open', async () => {
    const client = realtime(KEY);
    await once(client, 'open');
    const closed = once(client, 'close');
    await standIn.stop();
    await closed;
    standIn = await startStandIn(KEY);
  });
});
