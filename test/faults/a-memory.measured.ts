import { expect } from 'chai';
import { TestClock } from '../support/clock.js';
import { eventually } from '../support/eventually.js';
import { head, type RawClient } from '../support/raw.js';
import { staged } from './support/stage.js';
import type { Exchange } from './support/upstream.js';

const SECOND_MS = 1_000;
const MB = 1024 * 1024;
/** Half of what any head has: it is not that which ended them. */
const SOON_MS = 5 * SECOND_MS;
/** What all connections together may hold. */
const MOST_BYTES = 16 * MB;

describe('A: the memory that strangers hold', function () {
  this.timeout(60_000);
  const { stage, it } = staged({
    env: { ENABLE_METRICS: 'true', REQUEST_TIMEOUT: '10m' },
    clock: new TestClock({ standsStill: true }),
  });

  const openOf = (clients: readonly RawClient[]) => clients.filter(({ isClosed }) => !isClosed).length;
  const open = (count: number, bytes: string) => Promise.all(Array.from({ length: count }, () => stage.client(bytes)));
  /** Waits until the daemon has read so much of each client, or has ended it. */
  const read = (clients: readonly RawClient[], bytes: number) =>
    eventually('all is read', () =>
      clients.every((client) => client.isClosed || (stage.servedIfAny(client)?.bytesRead ?? Infinity) >= bytes),
    );

  describe('with heads that do not end', () => {
    const HEAD = `GET /v1/models HTTP/1.1\r\nHost: a\r\n${`X-Filler: ${'x'.repeat(1_000)}\r\n`.repeat(42)}`;

    it('A20 is bounded over all connections: the oldest end, and others are served (finding B2)', async () => {
      const clients = await open(600, HEAD);
      const most = MOST_BYTES / HEAD.length;
      await eventually('the first ones are ended', () => openOf(clients) <= most, SOON_MS);
      expect(openOf(clients), 'connections that are left').to.be.above(most / 2);
      expect((await stage.ask(stage.get())).status).to.equal(200);
      const [newest] = clients.slice(-1);
      expect(newest?.isClosed).to.equal(false);
      expect(stage.daemon.logged.join('')).to.include('connections were ended: too much was sent');
    });

    it('A20 ends those that take more than a second once half of the room is taken (finding B2)', async () => {
      const slow = await open(10, 'GET /v1/models HTTP/1.1\r\nHost: a\r\n');
      await read(slow, 30);
      stage.daemon.clock.advance(2 * SECOND_MS);
      expect(openOf(slow), 'while there is room').to.equal(10);
      const many = await open(300, HEAD);
      await read(many, HEAD.length);
      stage.daemon.clock.advance(SECOND_MS / 5); // It does not look at each byte.
      many[0]?.send('X');
      await eventually('the slow ones are ended', () => openOf(slow) === 0, SOON_MS);
      expect(openOf(many), 'those that came later').to.be.above(280);
    });

    it('A20 also behind a request that asked for another protocol (finding B2)', async () => {
      const upgrade = head('GET /live', null, { Connection: 'Upgrade', Upgrade: 'h2c' });
      const clients = await open(600, upgrade + HEAD);
      await eventually('the first ones are ended', () => openOf(clients) <= MOST_BYTES / HEAD.length, SOON_MS);
    });

    it('A20 also behind requests that were answered meanwhile (finding B2)', async () => {
      const clients = await open(600, 'GET /none HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(3) + HEAD);
      await eventually('the first ones are ended', () => openOf(clients) <= MOST_BYTES / HEAD.length, SOON_MS);
    });

    it('A20 a connection takes no more for each request that asks for another protocol (finding B2)', async () => {
      const client = await stage.client();
      const listeners: number[] = [];
      for (let requests = 0; requests < 12; requests++) {
        const upgrade = head('GET /live', null, { Connection: 'Upgrade', Upgrade: 'h2c' });
        client.send(upgrade.slice(0, 20));
        await read([client], requests * upgrade.length + 20);
        client.send(upgrade.slice(20));
        expect((await client.answer()).status).to.equal(200);
        const served = stage.servedTo(client);
        listeners.push(served.eventNames().reduce((sum, name) => sum + served.listenerCount(name), 0));
      }
      expect(listeners.at(-1)).to.equal(listeners[1]);
    });
  });

  describe('with requests behind one that is not answered', () => {
    it('A17 is bounded over all connections: the oldest end, and others are served (finding B1)', async () => {
      const held: Exchange[] = [];
      stage.upstream.script = (exchange) => {
        if (exchange.target === '/v1/slow') held.push(exchange);
        else exchange.answer(200);
      };
      const clients = await open(400, stage.get({}, '/v1/slow') + 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2_400));
      await eventually('some are ended', () => openOf(clients) <= 300);
      expect(openOf(clients), 'connections that are left').to.be.above(100);
      expect((await stage.ask(stage.get())).status).to.equal(200);
      for (const client of clients) client.destroy();
      // Of those on which much waits nothing is read, not even their end, until there is less.
      for (const exchange of held) exchange.answer(200);
    });

    it('A17 counts the bytes of those that are parsed, too (finding B1)', async () => {
      const held: Exchange[] = [];
      stage.upstream.script = (exchange) => {
        held.push(exchange);
      };
      const large = `GET / HTTP/1.1\r\nHost: a\r\nX-Filler: ${'x'.repeat(12_000)}\r\n\r\n`.repeat(4);
      const clients = await open(400, stage.get({}, '/v1/slow') + large);
      await eventually('some are ended', () => openOf(clients) <= MOST_BYTES / large.length);
      for (const client of clients) client.destroy();
      let areGone = false;
      const gone = stage.allGone().then(() => (areGone = true));
      // What was pipelined is served when nobody else is, and the clock stands still.
      await eventually('all are gone', () => {
        for (const exchange of held.splice(0)) exchange.answer(200);
        stage.daemon.clock.advance(SECOND_MS / 10);
        return areGone;
      });
      await gone;
    });
  });

  it('A30 behind handshakes that are not answered is bounded over all connections (finding B5)', async () => {
    const held: Exchange[] = [];
    stage.upstream.script = (exchange) => {
      held.push(exchange);
    };
    const handshake = stage.get({
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Version': '13',
    });
    const clients = await open(300, handshake + 'x'.repeat(64 * 1024));
    const [oldest] = clients;
    expect(await oldest?.answer()).to.include({ status: 503 });
    for (const client of clients) client.destroy();
    for (const exchange of held) exchange.fin();
  });

  describe('with answers that nobody reads', () => {
    const stylesheet = async () =>
      /href="([^"]+\.css)"/.exec((await stage.ask(head('GET /admin/login', null))).text)?.[1];
    const ANSWERED: Record<string, () => Promise<string>> = {
      'of files of the Admin UI': async () => head(`GET ${String(await stylesheet())}`, null).repeat(400),
      'of metrics': () => Promise.resolve(head('GET /metrics', null).repeat(600)),
    };
    for (const [what, requests] of Object.entries(ANSWERED)) {
      it(`D06 ${what} ends a connection after thirty seconds in which nothing was read (finding B1)`, async () => {
        const client = await stage.client();
        client.socket.pause();
        client.send(await requests());
        const served = stage.servedTo(client);
        await eventually('the kernel takes no more', () => served.writableLength > 0, 30_000);
        await eventually('nothing moves', () => served.writableLength > 0 && stage.daemon.clock.pending > 0);
        stage.daemon.clock.advance(20 * SECOND_MS);
        expect(served.destroyed, 'after 20 s').to.equal(false);
        stage.daemon.clock.advance(20 * SECOND_MS);
        expect(served.destroyed, 'after 40 s').to.equal(true);
      });
    }

    const REFUSED: Record<string, string> = {
      'of a handshake': head('GET /v1/realtime', null, {
        Connection: 'Upgrade',
        Upgrade: 'websocket',
        'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
        'Sec-WebSocket-Version': '13',
      }),
      'of a request that cannot be read to its end': `${head('POST /none', null, { 'Transfer-Encoding': 'chunked' })}zz\r\n`,
    };
    for (const [what, request] of Object.entries(REFUSED)) {
      it(`D06 the refusal ${what} ends its connection as well (finding B1)`, async () => {
        const client = await stage.client();
        await eventually('it is connected', () => stage.servedIfAny(client));
        const served = stage.servedTo(client);
        served._write = served._writev = () => undefined; // As if the kernel had no room.
        client.send(request);
        await eventually('it is refused', () => served.writableLength > 0);
        stage.daemon.clock.advance(40 * SECOND_MS);
        expect(served.destroyed).to.equal(true);
      });
    }
  });
});
