import { expect } from 'chai';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '../support/model.js';
import { chunk, head, LAST_CHUNK, type RawClient } from '../support/raw.js';
import { MeasuredDaemon } from './support/measured-daemon.js';
import type { Exchange } from './support/upstream.js';

const SECOND_MS = 1000;
// Longer than the 300 s after which Node's server ends a request by default.
const UPLOAD_MS = 310 * SECOND_MS;
const PIECES = 62;
const PIECE = 'x'.repeat(1024);
const SOAK_MS = 240 * SECOND_MS;
// When a load balancer closes an idle connection, and when most servers do.
const BALANCER_IDLE_MS = 60 * SECOND_MS;
const SERVER_IDLE_MS = 5 * SECOND_MS;

// These tests take minutes of real time, because neither Node's timers nor undici's use our clock. So they all run at once.
describe('E: timers that a test cannot move', function () {
  this.timeout(UPLOAD_MS + 60 * SECOND_MS);
  let stage: MeasuredDaemon;
  let hinted: MeasuredDaemon;
  const server = createServer({ keepAliveTimeout: SERVER_IDLE_MS }, (req, res) => {
    req.resume().on('end', () => res.end('{}'));
  });

  let uploads: Promise<{ client: RawClient; exchange: () => Exchange | undefined }>[];
  let idle: Promise<{ statusAfterBalancer: number; closedAfterMs: number }>;
  let soaks: Promise<{ asked: number; failed: number }>[];

  before(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    stage = await MeasuredDaemon.start();
    hinted = await MeasuredDaemon.start({
      UPSTREAM_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    });
    // This server does not state its keep-alive timeout. It is the same as that of the other server.
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      exchange.respond();
      await sleep(SERVER_IDLE_MS);
      const last = stage.upstream.exchanges.findLast(({ socket }) => socket === exchange.socket);
      if (last === exchange) exchange.fin();
    };
    uploads = [
      upload({ 'Transfer-Encoding': 'chunked' }, chunk(PIECE), LAST_CHUNK),
      // A body that is buffered until it is complete.
      upload({ 'Content-Length': String(PIECES * PIECE.length) }, PIECE, ''),
    ];
    idle = idleConnection();
    soaks = [stage, hinted].map(soak);
    for (const running of [...uploads, idle, ...soaks]) running.catch(() => undefined); // Each result is checked in a separate test.
  });
  after(async () => {
    await stage.stop();
    await hinted.stop();
    server.close().closeAllConnections();
  });

  async function upload(fields: Record<string, string>, piece: string, end: string) {
    const client = await stage.client();
    const id = `upload-${Object.keys(fields).join()}`;
    client.send(head('POST /v1/files', stage.secret, { 'X-Request-ID': id, ...fields }));
    for (let sent = 0; sent < PIECES; sent++) {
      await sleep(UPLOAD_MS / PIECES);
      client.send(piece);
    }
    client.send(end);
    return { client, exchange: () => stage.upstream.exchanges.find(({ requestId }) => requestId === id) };
  }

  async function idleConnection() {
    const client = await stage.client();
    const ask = async () => {
      client.send(head('GET /v1/models', stage.secret));
      return (await client.response()).status;
    };
    await ask();
    await sleep(BALANCER_IDLE_MS + 2 * SECOND_MS);
    const statusAfterBalancer = await ask();
    const idleSinceMs = performance.now();
    await client.closed;
    return { statusAfterBalancer, closedAfterMs: performance.now() - idleSinceMs };
  }

  /** Clients that send a request now and then, so that idle connections are often about to close. */
  async function soak(daemon: MeasuredDaemon) {
    const random = seededRandom(11);
    const endsAtMs = performance.now() + SOAK_MS;
    const count = { asked: 0, failed: 0 };
    const callNowAndThen = async () => {
      const client = await daemon.client();
      while (performance.now() < endsAtMs) {
        await sleep(random() * 1.5 * SERVER_IDLE_MS);
        client.send(head('POST /v1/echo', daemon.secret, { 'Content-Length': '2' }) + '{}');
        count.asked += 1;
        if ((await client.response()).status !== 200) count.failed += 1;
      }
      client.destroy();
    };
    await Promise.all(Array.from({ length: 40 }, callNowAndThen));
    return count;
  }

  for (const [i, how] of ['in chunks', 'of a declared length'].entries()) {
    it(`E09 an upload ${how} that takes longer than 300 s is not cut`, async () => {
      const { client, exchange } = await uploads[i]!;
      expect((await client.response()).status).to.equal(200);
      expect(exchange()!.request.body).to.have.lengthOf(PIECES * PIECE.length);
    });
  }

  it('E10 an idle client connection stays open longer than a load balancer keeps it, and not forever', async () => {
    const { statusAfterBalancer, closedAfterMs } = await idle;
    expect(statusAfterBalancer).to.equal(200);
    expect(closedAfterMs).to.be.within(BALANCER_IDLE_MS + 5 * SECOND_MS, 2 * BALANCER_IDLE_MS);
  });

  for (const [i, what] of ['does not state its keep-alive timeout', 'states its keep-alive timeout'].entries()) {
    it(`E11 an upstream that ${what}: the daemon closes idle connections first, and no POST fails`, async () => {
      const { asked, failed } = await soaks[i]!;
      expect(asked).to.be.above(1_000);
      expect(failed).to.equal(0);
    });
  }
});
