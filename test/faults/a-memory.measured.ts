import { expect } from 'chai';
import { TestClock } from '../support/clock.js';
import { eventually } from '../support/eventually.js';
import { head, type RawClient, WEBSOCKET } from '../support/raw.js';
import { staged } from './support/fault-fixture.js';
import type { Exchange } from './support/upstream.js';

const SECOND_MS = 1_000;
const MB = 1024 * 1024;
/** Half of the time that a head has, so a head's own timeout is not what ends these. */
const SOON_MS = 5 * SECOND_MS;
/** The limit for all connections together. */
const MOST_BYTES = 49 * MB;

describe('A: memory that unauthenticated clients can use', function () {
  this.timeout(60_000);
  const { stage, it } = staged({
    env: { ENABLE_METRICS: 'true', REQUEST_TIMEOUT: '10m', MAX_CONNECTIONS: '2000' },
    clock: new TestClock({ standsStill: true }),
  });

  const openOf = (clients: readonly RawClient[]) => clients.filter(({ isClosed }) => !isClosed).length;
  const open = async (count: number, bytes: string) => {
    const clients: RawClient[] = [];
    // Not all at once: the kernel drops connections that wait to be accepted.
    while (clients.length < count) {
      const next = Math.min(300, count - clients.length);
      clients.push(...(await Promise.all(Array.from({ length: next }, () => stage.client(bytes)))));
    }
    return clients;
  };
  /** Waits until the daemon has read `bytes` of each client or closed its connection. */
  const read = (clients: readonly RawClient[], bytes: number) =>
    eventually('everything is read', () =>
      clients.every((client) => client.isClosed || (stage.serverSocketIfAny(client)?.bytesRead ?? Infinity) >= bytes),
    );

  describe('with unfinished heads', () => {
    const HEAD = `GET /v1/models HTTP/1.1\r\nHost: a\r\n${`X-Filler: ${'x'.repeat(1_000)}\r\n`.repeat(42)}`;

    it('A20 unfinished heads are bounded over all connections: the oldest are closed, and others are served', async () => {
      const clients = await open(1_500, HEAD);
      const most = MOST_BYTES / HEAD.length;
      await eventually('the first ones are closed', () => openOf(clients) <= most, SOON_MS);
      expect(openOf(clients), 'connections that are left').to.be.above(most / 2);
      expect((await stage.ask(stage.get())).status).to.equal(200);
      const [newest] = clients.slice(-1);
      expect(newest?.isClosed).to.equal(false);
      expect(stage.daemon.logged.join('')).to.include('connections were closed: too much was waiting');
    });

    it('A20 unfinished heads count also after a request for a protocol upgrade', async () => {
      const upgrade = head('GET /live', null, { Connection: 'Upgrade', Upgrade: 'h2c' });
      const clients = await open(1_500, upgrade + HEAD);
      await eventually('the first ones are closed', () => openOf(clients) <= MOST_BYTES / HEAD.length, SOON_MS);
    });

    it('A20 unfinished heads count also after requests that were served meanwhile', async () => {
      const clients = await open(1_500, 'GET /none HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(3) + HEAD);
      await eventually('the first ones are closed', () => openOf(clients) <= MOST_BYTES / HEAD.length, SOON_MS);
    });

    it('A20 a connection takes no more memory for each request for an upgrade', async () => {
      const client = await stage.client();
      const listeners: number[] = [];
      for (let requests = 0; requests < 12; requests++) {
        const upgrade = head('GET /live', null, { Connection: 'Upgrade', Upgrade: 'h2c' });
        client.send(upgrade.slice(0, 20));
        await read([client], requests * upgrade.length + 20);
        client.send(upgrade.slice(20));
        expect((await client.response()).status).to.equal(200);
        const served = stage.serverSocket(client);
        listeners.push(served.eventNames().reduce((sum, name) => sum + served.listenerCount(name), 0));
      }
      expect(listeners.at(-1)).to.equal(listeners[1]);
    });
  });

  describe('with requests pipelined after an unanswered one', () => {
    it('A17 pipelined requests are bounded over all connections: the oldest connections are closed, and others are served', async () => {
      const held: Exchange[] = [];
      stage.upstream.script = (exchange) => {
        if (exchange.target === '/v1/slow') held.push(exchange);
        else exchange.respond(200);
      };
      const clients = await open(1_000, stage.get({}, '/v1/slow') + 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2_400));
      await eventually('some are closed', () => openOf(clients) <= 900);
      expect(openOf(clients), 'connections that are left').to.be.above(300);
      expect((await stage.ask(stage.get())).status).to.equal(200);
      for (const client of clients) client.destroy();
      // On connections with many waiting requests nothing is read, not even their end, until fewer wait.
      for (const exchange of held) exchange.respond(200);
    });

    it('A17 bytes of parsed requests count too', async () => {
      const held: Exchange[] = [];
      stage.upstream.script = (exchange) => {
        held.push(exchange);
      };
      const large = `GET / HTTP/1.1\r\nHost: a\r\nX-Filler: ${'x'.repeat(12_000)}\r\n\r\n`.repeat(4);
      const clients = await open(1_300, stage.get({}, '/v1/slow') + large);
      await eventually('some are closed', () => openOf(clients) <= MOST_BYTES / large.length);
      for (const client of clients) client.destroy();
      let areGone = false;
      const gone = stage.allDisconnected().then(() => (areGone = true));
      // Pipelined requests are served when no other client is, and the clock stands still.
      await eventually('all are closed', () => {
        for (const exchange of held.splice(0)) exchange.respond(200);
        stage.daemon.clock.advance(SECOND_MS / 10);
        return areGone;
      });
      await gone;
    });
  });

  it('A30 data after unanswered WebSocket handshakes is bounded over all connections', async () => {
    const held: Exchange[] = [];
    stage.upstream.script = (exchange) => {
      held.push(exchange);
    };
    const handshake = stage.get(WEBSOCKET);
    const clients = await open(900, handshake + 'x'.repeat(64 * 1024));
    const [oldest] = clients;
    expect(await oldest?.response()).to.include({ status: 503 });
    for (const client of clients) client.destroy();
    for (const exchange of held) exchange.fin();
  });

  describe('with responses that the client does not read', () => {
    const stylesheet = async () =>
      /href="([^"]+\.css)"/.exec((await stage.ask(head('GET /admin/login', null))).text)?.[1];
    const ANSWERED: Record<string, () => Promise<string>> = {
      'of files of the Admin UI': async () => head(`GET ${String(await stylesheet())}`, null).repeat(400),
      'of metrics': () => Promise.resolve(head('GET /metrics', null).repeat(600)),
    };
    for (const [what, requests] of Object.entries(ANSWERED)) {
      it(`D06 a response ${what} of which the client reads nothing for thirty seconds: the connection closes`, async () => {
        const client = await stage.client();
        client.socket.pause();
        client.send(await requests());
        const served = stage.serverSocket(client);
        await eventually('the kernel accepts no more', () => served.writableLength > 0, 30_000);
        await eventually('nothing moves', () => served.writableLength > 0 && stage.daemon.clock.pending > 0);
        stage.daemon.clock.advance(20 * SECOND_MS);
        expect(served.destroyed, 'after 20 s').to.equal(false);
        stage.daemon.clock.advance(20 * SECOND_MS);
        expect(served.destroyed, 'after 40 s').to.equal(true);
      });
    }

    const REFUSED: Record<string, string> = {
      'of a handshake': head('GET /v1/realtime', null, WEBSOCKET),
      'of a request that cannot be parsed to its end': `${head('POST /none', null, { 'Transfer-Encoding': 'chunked' })}zz\r\n`,
    };
    for (const [what, request] of Object.entries(REFUSED)) {
      it(`D06 a refusal ${what} that the client does not read: the connection closes`, async () => {
        const client = await stage.client();
        await eventually('it is connected', () => stage.serverSocketIfAny(client));
        const served = stage.serverSocket(client);
        served._write = served._writev = () => undefined; // As if the kernel's buffers were full.
        client.send(request);
        await eventually('it is refused', () => served.writableLength > 0);
        stage.daemon.clock.advance(40 * SECOND_MS);
        expect(served.destroyed).to.equal(true);
      });
    }
  });
});
