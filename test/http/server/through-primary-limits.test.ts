/** The limits of what passes between a worker and its primary for clients: the same as for any other request and response. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { MemoryLimit } from '../../../daemon/core/memory-limit.js';
import { type Connect, throughPrimary } from '../../../daemon/http/server/through-primary.js';
import { UnreadResponses } from '../../../daemon/http/connection-ends.js';
import { TestClock } from '../../support/clock.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { ask, chunk, head, LAST_CHUNK, RawClient } from '../../support/raw.js';

/** More than the kernel takes for a client that does not read. */
const REQUESTS = 2_000;
/** By then a client that reads nothing is disconnected. */
const UNREAD_MS = 60_000;

for (const workers of [1, 3]) {
  describe(`a response that is not read, with ${workers} worker${workers === 1 ? '' : 's'}`, () => {
    let daemon: TestDaemon;
    let clock: TestClock;
    let style: string;

    before(async () => {
      clock = new TestClock();
      const env = { WORKERS: String(workers) };
      daemon = await startDaemon({ env, clock });
      const { text } = await ask(daemon.url, head('GET /admin/login', null));
      style = /href="([^"]+\.css)"/.exec(text)?.[1] ?? 'none';
      expect((await ask(daemon.url, head(`GET ${style}`, null))).status).to.equal(200);
    });
    after(() => daemon.stop());

    const connections = () =>
      new Promise<number>((resolve) => {
        daemon.daemon.server.getConnections((_error, count) => {
          resolve(count);
        });
      });

    for (const end of ['open', 'half-closed'] as const) {
      it(`pipelined requests for the style sheet on a connection that is ${end}: it is closed`, async () => {
        await eventually('no connection is left of the test before', async () => (await connections()) === 0);
        const client = await RawClient.to(daemon.url);
        client.socket.pause();
        client.send(head(`GET ${style}`, null).repeat(REQUESTS));
        await eventually('it is connected', async () => (await connections()) === 1);
        if (end === 'half-closed') client.socket.end();
        await eventually('it is closed', async () => {
          // On a busy machine it takes a while until nothing more fits into the buffers of the kernel.
          await sleep(100);
          for (let passedMs = 0; passedMs < UNREAD_MS; passedMs += 1_000) {
            clock.advance(1_000);
            await sleep(1);
          }
          return (await connections()) === 0;
        });
        client.destroy();
      });
    }

    it('a body in chunks of one byte arrives as it was sent', async () => {
      const body = JSON.stringify({ name: `in pieces, ${workers}`, api_key: 'sk-upstream-0' });
      const fields = { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' };
      const bytes = head('POST /manage/projects', MANAGEMENT_TOKEN, fields) + body.replaceAll(/./g, chunk) + LAST_CHUNK;
      const { status, json } = await ask(daemon.url, bytes);
      expect([status, json.name]).to.deep.equal([201, `in pieces, ${workers}`]);
    });
  });
}

const limitOf = (bytes: number) => new MemoryLimit({ heap: { isFull: false }, onDropped: null, maxBytes: () => bytes });

describe('requests that wait for the primary', () => {
  let server: Server | null = null;
  afterEach(() => {
    server?.close().closeAllConnections();
  });

  async function serve(connect: Connect, most: number): Promise<string> {
    const memory = limitOf(most);
    const listening = createServer(throughPrimary({ connect, app: () => undefined, memory })).listen(0);
    server = listening;
    await once(listening, 'listening');
    return `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
  }

  it('of too many unfinished requests the oldest are closed, the newest are kept', async () => {
    const tunnels: Duplex[] = [];
    const connect = () => {
      const tunnel = new Duplex({
        read: () => undefined,
        write: (_bytes, _encoding, done: () => void) => {
          done();
        },
      });
      tunnels.push(tunnel);
      return tunnel;
    };
    const url = await serve(connect, 10 * 32 * 1024);
    const clients: RawClient[] = [];
    for (let number = 0; number < 11; number++) {
      const client = await RawClient.to(url);
      clients.push(client);
      client.send(head('POST /admin/login', null, { 'Content-Length': '1000' }));
      await eventually('it is passed on', () => tunnels.length === number + 1);
    }
    await eventually('two are closed', () => clients.filter(({ isClosed }) => isClosed).length === 2);
    expect(clients.slice(0, 2).map(({ isClosed }) => isClosed)).to.deep.equal([true, true]);
    await eventually(
      'their connections to the primary too',
      () => tunnels.filter((each) => each.destroyed).length === 2,
    );
    for (const client of clients) client.destroy();
  });

  it('while the primary takes no more of them, they are refused', async () => {
    const url = await serve(() => null, 10);
    const { status, json } = await ask(url, head('GET /manage/projects', MANAGEMENT_TOKEN));
    expect([status, (json as { code: string }).code]).to.deep.equal([503, 'unavailable']);
  });

  it('a response that is still being made counts as read while the client takes it', () => {
    const socket = Object.assign(new Duplex({ read: () => undefined }), { takenBytes: 0 });
    // Never called back: it stays full.
    socket._write = () => undefined;
    socket.write(Buffer.alloc(20_000));
    const watching = new TestClock({ standsStill: true });
    const unread = new UnreadResponses({ clock: watching, memory: limitOf(1e6) });
    const res = { socket, writableLength: socket.writableLength, once: () => undefined };
    unread.watch(res as never);
    for (let second = 0; second < 120; second++) {
      socket.takenBytes += 40; // More than a KiB in 30 seconds.
      unread.watch(res as never);
      watching.advance(1_000);
    }
    expect(socket.destroyed).to.equal(false);
    watching.advance(31_000);
    expect(socket.destroyed).to.equal(true);
  });
});
