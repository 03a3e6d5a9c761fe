/** The client obeys an abort signal, even after a garbage collection of what `fetch` references weakly. */
import { expect } from 'chai';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { ManagementClient, Unreachable } from '../../../daemon/api/client.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

describe('the client of the management API when aborted', () => {
  let server: Server;
  const ended = new Set<string>();

  before(async () => {
    server = createServer((request, response) => {
      const path = request.url ?? '';
      response.on('close', () => ended.add(path));
      const isStream = path.includes('stream');
      response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' });
      response.write(isStream ? ':\n\n' : '[');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const client = (timeoutMs = 30_000) =>
    new ManagementClient({
      server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      managementToken: 'not checked here',
      frontEnd: 'tui',
      timeoutMs,
      fetch,
    });

  async function collected(): Promise<void> {
    for (let n = 0; n < 5; n++) {
      await sleep(20);
      collectGarbage();
    }
  }

  async function readAll(stream: AsyncIterable<unknown>): Promise<'ended'> {
    const items = stream[Symbol.asyncIterator]();
    while ((await items.next()).done !== true);
    return 'ended';
  }

  for (const of of ['audit', 'events'] as const) {
    it(`ends the stream of ${of} and its connection`, async () => {
      const enough = new AbortController();
      const opened = new Promise<void>((resolve) => {
        const options = { signal: enough.signal, onOpen: resolve };
        const stream = of === 'audit' ? client().auditStream({}, options) : client().events({}, options);
        void readAll(stream).then((how) => ended.add(`${how} ${of}`));
      });
      await opened;
      await collected();
      enough.abort();
      for (let n = 0; n < 100 && !ended.has(`/manage/${of}/stream`); n++) await sleep(20);
      expect([...ended]).to.include.members([`ended ${of}`, `/manage/${of}/stream`]);
    });
  }

  it('reports a stream that falls silent', async () => {
    const stream = client().auditStream({}, { idleTimeoutMs: 500, onOpen: () => void collected() });
    const error: unknown = await readAll(stream).catch((problem: unknown) => problem);
    expect(error).to.be.instanceOf(Unreachable);
    expect((error as Unreachable).message).to.equal('no response in time');
  });

  it('times out if the body of a response does not arrive', async () => {
    const asked = client(500).projects();
    await collected();
    const error: unknown = await asked.catch((problem: unknown) => problem);
    expect(error).to.be.instanceOf(Unreachable);
    expect((error as Unreachable).message).to.equal('no response in time');
  });
});
