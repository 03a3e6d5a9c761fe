import { expect } from 'chai';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { makeDatabaseUnreachable } from '../support/database-outage.js';
import { chunk, head, type RawClient } from '../support/raw.js';
import { eventually } from '../support/eventually.js';
import { staged } from './support/fault-fixture.js';
import type { Exchange } from './support/upstream.js';

const MINUTE_MS = 60_000;

describe('D: clients that disconnect', () => {
  const { stage, it, itInOneProcess } = staged({ env: { REQUEST_TIMEOUT: '60s', CLIENT_BODY_TIMEOUT: '30s' } });

  /** Destroys the client. @returns the number of milliseconds until the upstream connection was closed. */
  async function leave(client: RawClient, exchange: Exchange): Promise<number> {
    const leftAtMs = performance.now();
    const closed = new Promise<void>((resolve) => exchange.socket.once('close', resolve));
    client.destroy();
    await closed;
    return performance.now() - leftAtMs;
  }

  const silent = () => undefined;

  for (const method of ['GET', 'POST'] as const) {
    it(`D01 a client disconnects before the first byte of the response to a ${method}: the upstream request is aborted at once`, async () => {
      stage.upstream.script = silent;
      const tookMs: number[] = [];
      for (let round = 1; round <= 20; round++) {
        const client = await stage.client(method === 'GET' ? stage.get() : stage.post('{"a":1}'));
        await eventually('the request is at the upstream', () => stage.upstream.exchanges.length === round);
        const exchange = stage.upstream.exchanges.at(-1)!;
        await exchange.whole();
        tookMs.push(await leave(client, exchange));
        expect(client.pending.toString(), 'bytes at the client').to.equal('');
        expect(exchange.request.body.toString()).to.equal(method === 'GET' ? '' : '{"a":1}');
      }
      await eventually('all have ended', () => stage.daemon.ended.length === tookMs.length);
      for (const ended of stage.daemon.ended) expect(ended).to.include({ outcome: 'client_closed', status: 499 });
      expect(await stage.uses(), 'uses: they were forwarded').to.equal(tookMs.length);
      expect(stage.upstream.sockets.size, 'connections that no request needs').to.equal(0);
      // The bound is for the 99th percentile. On a busy machine the median shows the same.
      expect(tookMs.sort((a, b) => a - b)[10]).to.be.below(50);
    });
  }

  it('D01 a client disconnects: its pipelined requests end too', async () => {
    stage.upstream.script = silent;
    const client = await stage.client(stage.get() + stage.post('{}') + stage.get());
    await leave(client, await stage.upstream.only());
    await stage.allDisconnected();
    expect(await stage.uses()).to.equal(1);
    expect(stage.upstream.exchanges, 'requests at the upstream').to.have.lengthOf(1);
  });

  for (const [what, fields] of Object.entries({ 'in chunks': 'Transfer-Encoding: chunked', 'without a length': '' })) {
    it(`D02 a client leaves an event stream ${what}: nothing more is read from the upstream`, async () => {
      let pumped = Promise.resolve();
      stage.upstream.script = (exchange) => {
        exchange.send(`HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n${fields}${fields && '\r\n'}\r\n`);
        exchange.send(fields ? chunk('data: first\n\n') : 'data: first\n\n');
        if (!fields) pumped = exchange.pump(1e9);
      };
      const client = await stage.client(stage.get());
      await client.seen('data: first\n\n');
      const exchange = await stage.upstream.only();
      expect(await leave(client, exchange)).to.be.below(1_000);
      await pumped;
      expect(exchange.sentBytes, 'of a billion').to.be.below(100e6);
      expect(await stage.onlyRecord()).to.include({ outcome: 'client_closed', status: 200 });
      expect(await stage.uses()).to.equal(1);
    });
  }

  describe('during an upload', () => {
    const UPLOADS = {
      'in chunks': { fields: { 'Transfer-Encoding': 'chunked' }, begins: chunk('the beginning') },
      'of a declared length': { fields: { 'Content-Length': '100000' }, begins: 'the beginning' },
    };
    for (const [what, { fields, begins }] of Object.entries(UPLOADS)) {
      it(`D03 an upload ${what} of which only a part was sent: the upstream request is aborted and the use stays counted`, async () => {
        stage.upstream.script = silent;
        const client = await stage.client(stage.post('', fields) + begins);
        const exchange = await stage.upstream.only();
        await eventually('the beginning has arrived', () => exchange.request.body.length > 0);
        expect(await leave(client, exchange)).to.be.below(1_000);
        expect(exchange.request).to.include({ isComplete: false });
        expect(exchange.request.body.toString()).to.equal('the beginning');
        expect(await stage.onlyRecord()).to.include({ outcome: 'client_closed', status: 499 });
        expect(await stage.uses()).to.equal(1);
      });
    }

    it('D03 an unfinished small body: it is buffered until it is complete, so no use is spent', async () => {
      const client = await stage.client(stage.post('', { 'Content-Length': '100' }) + 'the beginning');
      await stage.inFlight(1);
      client.destroy();
      expect(await stage.onlyRecord()).to.include({ outcome: 'client_closed', status: 499 });
      await stage.expectNothingSpent();
    });

    it('D03 the response arrived before the upload ended: it stays the recorded outcome', async () => {
      stage.upstream.script = (exchange) => {
        exchange.respond(413);
      };
      const client = await stage.client(stage.post('', { 'Transfer-Encoding': 'chunked' }) + chunk('the beginning'));
      expect((await client.response()).status).to.equal(413);
      client.send(chunk('more'));
      client.send(chunk('and more'));
      client.destroy();
      expect(await stage.onlyRecord()).to.include({ outcome: 'upstream_refused', status: 413 });
    });
  });

  // When the clock jumps, a worker may be taken for dead, and the units that it has leased count as used.
  itInOneProcess('D04 while the database is asked: nothing is forwarded', async () => {
    stage.daemon.clock.advance(MINUTE_MS); // A minute later, known tokens are read from the database again.
    let proceed: () => void = silent;
    const gate = new Promise<void>((resolve) => {
      proceed = resolve;
    });
    const slow = makeDatabaseUnreachable(stage.daemon, (reach) => gate.then(reach));
    try {
      const client = await stage.client(stage.post('{}'));
      await eventually('the database is asked', () => slow.attempts > 0);
      client.destroy();
      expect(await stage.onlyRecord()).to.include({ outcome: 'client_closed', status: 499 });
    } finally {
      slow.end();
      proceed();
    }
    await stage.inFlight(0);
    await stage.expectNothingSpent();
  });

  describe('right after the last byte', () => {
    const BODY = 'x'.repeat(300_000);
    const ANSWERS: Record<string, (exchange: Exchange) => void> = {
      'of a small response': (exchange) => {
        exchange.respond();
      },
      'of a large response': (exchange) => {
        exchange.respond(200, '', BODY);
      },
      'of a chunked response': (exchange) => {
        exchange.send(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunk(BODY)}0\r\n\r\n`);
      },
    };
    for (const [what, script] of Object.entries(ANSWERS)) {
      for (const [how, go] of Object.entries({
        close: (client: RawClient) => client.socket.destroy(),
        reset: (client: RawClient) => client.socket.resetAndDestroy(),
      })) {
        it(`D08 after the last byte ${what}, the client ${how} the connection: it counts as a success`, async () => {
          stage.upstream.script = script;
          for (let round = 1; round <= 10; round++) {
            const client = await stage.client(stage.get());
            expect((await client.response()).status).to.equal(200);
            go(client);
            await eventually('it has ended', () => stage.daemon.ended.length === round);
          }
          for (const ended of stage.daemon.ended) expect(ended).to.include({ outcome: 'ok', status: 200 });
        });
      }
    }

    it('D08 after a complete response with Connection: close, the client disconnects: it counts as a success', async () => {
      const client = await stage.client(stage.get({ Connection: 'close' }));
      await client.seen('{"ok":true}');
      client.socket.resetAndDestroy();
      expect(await stage.onlyRecord()).to.include({ outcome: 'ok', status: 200 });
    });
  });
});

describe('D: clients that disconnect while they wait for an upstream connection', () => {
  const { stage, it } = staged({ env: { UPSTREAM_CONNECTIONS: '1', UPSTREAM_CONNECT_TIMEOUT: '1h' } });

  it('D04 a waiting request whose client disconnects is dropped at once, and the next one gets the connection', async () => {
    stage.upstream.script = () => undefined;
    const first = await stage.client(stage.get());
    const exchange = await stage.upstream.only();
    const timers = stage.daemon.clock.pending;
    const other = await stage.issue();
    const waiting: RawClient[] = [];
    for (let i = 0; i < 5; i++) waiting.push(await stage.client(head('GET /v1/models', other.token)));
    await stage.inFlight(6);
    const last = await stage.client(stage.get({}, '/v1/last'));
    await stage.inFlight(7);
    for (const client of waiting) client.destroy();
    await stage.inFlight(2);
    await eventually('only the timers of waiting requests are left', () => stage.daemon.clock.pending <= timers + 2);
    expect(stage.daemon.ended.map(({ outcome, status }) => `${outcome} ${String(status)}`)).to.deep.equal(
      waiting.map(() => 'client_closed 499'),
    );

    stage.upstream.script = (each) => {
      each.respond();
    };
    exchange.respond();
    expect((await first.response()).status).to.equal(200);
    expect((await last.response()).status).to.equal(200);
    expect(stage.upstream.exchanges.map(({ target }) => target)).to.deep.equal(['/v1/models', '/v1/last']);
    expect(await stage.uses(other)).to.equal(0);
  });
});

describe('D: clients that disconnect while the upstream connection is being made', () => {
  const openings: Socket[] = [];
  // It accepts connections and never completes the TLS handshake.
  const silent = createServer((socket) => {
    openings.push(socket.on('error', () => undefined).resume());
  });
  before(async () => {
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
  });
  const { stage, it } = staged({
    env: { UPSTREAM_CONNECTIONS: '1', UPSTREAM_CONNECT_TIMEOUT: '1h' },
    upstreamUrl: () => `https://127.0.0.1:${(silent.address() as AddressInfo).port}`,
  });
  after(() => silent.close());

  it('D04 the connection attempt ends with its client, and the next request makes its own', async () => {
    for (let round = 1; round <= 3; round++) {
      const client = await stage.client(stage.post('{}'));
      await eventually('a connection attempt began', () => openings.length === round);
      client.destroy();
      await eventually('it has closed', () => openings.at(-1)!.destroyed);
      await eventually('it has ended', () => stage.daemon.ended.length === round);
    }
    for (const ended of stage.daemon.ended) expect(ended).to.include({ outcome: 'client_closed', status: 499 });
    expect(openings, 'connections').to.have.lengthOf(3);
  });
});
