import { expect } from 'chai';
import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { mintSecret } from '../../daemon/core/token.js';
import { eventually } from '../support/eventually.js';
import { seededRandom } from '../support/model.js';
import { chunk, head, LAST_CHUNK, type RawClient } from '../support/raw.js';
import { expectRefusal, UNAUTHORIZED, UPSTREAM_TIMEOUT } from '../support/refusals.js';
import { pumping, untilStalled } from './support/pressure.js';
import { staged } from './support/fault-fixture.js';
import type { Exchange, Script } from './support/upstream.js';

const SECOND_MS = 1000;
const LOOK_EVERY_MS = 60;
const REQUEST_TIMEOUT_MS = 120 * SECOND_MS;
const PIECE_BYTES = 64 * 1024;
const GIGABYTE = 1e9;
// What the kernel buffers on two loopback connections, with a margin.
const MOST_UNDERWAY_BYTES = 40e6;
// What the kernel buffers of an upload. It chooses the size of its buffers, usually 8 MB on Linux.
const MOST_UPLOADED_BYTES = 16e6;

describe('D: clients that do not read, and upstreams that do not read', () => {
  const { stage, it } = staged({ env: { REQUEST_TIMEOUT: '120s', MAX_REQUEST_SIZE: '1GB' } });

  /** A client that requested `bytes` and reads none, after the upstream was paused. */
  async function stalledReader(
    bytes: number,
    secret = stage.secret,
  ): Promise<{ client: RawClient; exchange: Exchange }> {
    stage.upstream.script = pumping(bytes);
    const before = stage.upstream.exchanges.length;
    const client = await stage.client();
    client.socket.pause();
    client.send(head('GET /v1/models', secret));
    await eventually('it is at the upstream', () => stage.upstream.exchanges.length > before);
    const exchange = stage.upstream.exchanges[before]!;
    expect(await untilStalled(() => exchange.sentBytes, LOOK_EVERY_MS)).to.be.below(MOST_UNDERWAY_BYTES);
    return { client, exchange };
  }

  it('D06 many clients read nothing: their upstreams are paused, and each connection is closed after REQUEST_TIMEOUT', async () => {
    const READERS = 30;
    stage.upstream.script = pumping(GIGABYTE);
    for (let i = 0; i < READERS; i++) {
      const client = await stage.client();
      client.socket.pause();
      client.send(stage.get());
    }
    const { exchanges } = stage.upstream;
    await eventually('all are at the upstream', () => exchanges.length === READERS);
    const sent = await untilStalled(() => exchanges.reduce((sum, { sentBytes }) => sum + sentBytes, 0), LOOK_EVERY_MS);
    expect(sent).to.be.below(READERS * MOST_UNDERWAY_BYTES);
    expect(stage.daemon.ended, 'ended too early').to.be.empty;
    stage.daemon.clock.advance(REQUEST_TIMEOUT_MS);
    await eventually('all are cut', () => stage.daemon.ended.length === READERS);
    for (const exchange of exchanges) await exchange.closed();
    for (const ended of stage.daemon.ended) expect(ended).to.include({ outcome: 'client_closed', status: 200 });
  });

  it('D06 a client that reads a little now and then is not cut off and gets everything', async () => {
    const { client, exchange } = await stalledReader(100e6);
    client.discard();
    for (let i = 0; i < 3; i++) {
      stage.daemon.clock.advance(REQUEST_TIMEOUT_MS - SECOND_MS);
      const before = exchange.sentBytes;
      client.socket.resume();
      await eventually('the upstream may continue', () => exchange.sentBytes > before);
      client.socket.pause();
    }
    client.socket.resume();
    await eventually('everything has arrived', () => client.socket.bytesRead > 100e6);
    expect(await stage.onlyRecord()).to.include({ outcome: 'ok' });
  });

  /** An upload that the upstream does not read, when all buffers are full. */
  async function stalledUpload(): Promise<{ client: RawClient; exchange: Exchange }> {
    stage.upstream.script = (exchange) => {
      exchange.socket.pause();
    };
    const client = await stage.client(head('POST /v1/echo', stage.secret, { 'Content-Length': String(GIGABYTE) }));
    const piece = Buffer.alloc(PIECE_BYTES, 'x');
    let written = 0;
    const write = () => {
      do written += piece.length;
      while (client.socket.write(piece));
    };
    client.socket.on('drain', write);
    write();
    const exchange = await stage.upstream.only();
    expect(await untilStalled(() => written, LOOK_EVERY_MS)).to.be.below(MOST_UPLOADED_BYTES);
    return { client, exchange };
  }

  async function expectAborted(exchange: Exchange): Promise<void> {
    exchange.socket.resume();
    await exchange.closed();
    expect(exchange.request).to.include({ isComplete: false });
    expect(await stage.onlyRecord()).to.include({ outcome: 'timeout', status: 504 });
    expect(await stage.uses()).to.equal(1);
  }

  it('D07 an upstream that does not read an upload blocks the client, until 504', async () => {
    const { client, exchange } = await stalledUpload();
    expect(stage.daemon.ended, 'ended too early').to.be.empty;
    stage.daemon.clock.advance(REQUEST_TIMEOUT_MS);
    expectRefusal(await client.response(), UPSTREAM_TIMEOUT);
    await expectAborted(exchange);
    client.destroy();
  });

  it('D03 D07 a client that disconnects from a blocked upload is not noticed before the unread bytes: the request ends with the 504', async () => {
    const { client, exchange } = await stalledUpload();
    client.destroy();
    stage.daemon.clock.advance(REQUEST_TIMEOUT_MS);
    await expectAborted(exchange);
    await stage.allDisconnected();
  });

  /** A client that does not read a response that the upstream has sent completely. */
  async function stuckAnswer(): Promise<{ client: RawClient; answered: number }> {
    stage.upstream.script = (exchange) => {
      if (exchange.target !== '/v1/stream') exchange.respond(200, '', 'x'.repeat(30_000));
    };
    const client = await stage.client();
    client.socket.pause();
    client.send(stage.get().repeat(1_000));
    await eventually('some are answered', () => stage.daemon.ended.length > 0);
    const answered = await untilStalled(() => stage.daemon.ended.length, LOOK_EVERY_MS);
    expect(answered).to.be.below(1_000);
    return { client, answered };
  }

  it('D06 a client that does not read a response which the upstream has completed is cut off too', async () => {
    const { answered } = await stuckAnswer();
    stage.daemon.clock.advance(REQUEST_TIMEOUT_MS);
    await stage.inFlight(0);
    expect(stage.daemon.ended.slice(answered)).to.have.lengthOf(1);
    expect(stage.daemon.ended[answered]).to.include({ outcome: 'client_closed', status: 200 });
  });

  it('D01 D08 a client disconnects during its response: the upstream connection, now used by another request, stays open', async () => {
    const { client, answered } = await stuckAnswer();
    const other = await stage.client(stage.get({}, '/v1/stream'));
    const { exchanges } = stage.upstream;
    await eventually('the other is at the upstream', () => exchanges.at(-1)!.target === '/v1/stream');
    const stream = exchanges.at(-1)!;
    expect(stream.socket, 'its connection').to.equal(exchanges.at(-2)!.socket);
    client.destroy();
    await stage.inFlight(1);
    expect(stage.daemon.ended[answered]).to.include({ outcome: 'client_closed', status: 200 });
    stream.respond(200, '', "the other client's response");
    expect((await other.response()).text).to.equal("the other client's response");
  });

  describe('a slow reader', () => {
    it('D10 the token of a slow reader expires: the stream may finish', async () => {
      const { token: secret } = await stage.issue({ duration_minutes: 1 });
      const { client } = await stalledReader(20e6, secret);
      stage.daemon.clock.advance(61 * SECOND_MS);
      expectRefusal(await stage.ask(head('GET /v1/models', secret)), UNAUTHORIZED);
      client.discard();
      await eventually('everything has arrived', () => client.socket.bytesRead > 20e6);
      await stage.inFlight(0);
      expect(stage.daemon.ended.map(({ outcome }) => outcome)).to.deep.equal(['refused', 'ok']);
    });

    const CHANGES: Record<string, () => Promise<unknown>> = {
      'its token is revoked': () => stage.daemon.manage('DELETE', `/manage/tokens/${stage.token.id}`),
      "all the project's tokens are revoked": () =>
        stage.daemon.manage('POST', `/manage/projects/${stage.project.id}/tokens/revoke`),
      'the project is deactivated': async () => {
        await stage.daemon.manage('PATCH', `/manage/projects/${stage.project.id}`, { is_active: false });
        await stage.daemon.manage('PATCH', `/manage/projects/${stage.project.id}`, { is_active: true });
      },
    };
    for (const [what, change] of Object.entries(CHANGES)) {
      it(`D10 a slow reader is cut off within a second when ${what}, and so is its upstream request`, async () => {
        const { client, exchange } = await stalledReader(GIGABYTE);
        const begun = performance.now();
        await change();
        await exchange.closed();
        expect(await stage.onlyRecord()).to.include({ outcome: 'revoked', status: 200 });
        expect(performance.now() - begun).to.be.below(SECOND_MS);
        client.discard();
        await client.closed;
        expect(client.socket.bytesRead).to.be.below(MOST_UNDERWAY_BYTES);
      });
    }
  });
});

describe('D: many clients', () => {
  const { stage, it } = staged();

  /** The open descriptors of this process, without both ends of each idle connection to the upstream. */
  const descriptors = () => readdirSync('/proc/self/fd').length - 2 * stage.upstream.sockets.size;

  const SCRIPTS: Record<string, Script> = {
    '/v1/silent': () => undefined,
    '/v1/begun': (exchange) => {
      exchange.send(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunk('begun')}`);
    },
    '/v1/pumped': pumping(GIGABYTE),
    '/v1/answered': (exchange) => {
      exchange.respond();
    },
  };

  it('D05 300 clients connect, send and disconnect at random moments: nothing is left', async () => {
    const random = seededRandom(5);
    const oneOf = <T>(choices: readonly T[]) => choices[Math.floor(random() * choices.length)]!;
    const secrets = [stage.secret, mintSecret()];
    const requests = (target: string) => [
      head(`GET ${target}`, oneOf(secrets)),
      head(`GET ${target}`, oneOf(secrets)).slice(0, -1),
      head(`POST ${target}`, oneOf(secrets), { 'Content-Length': '9' }) + 'not all',
      head(`POST ${target}`, oneOf(secrets), { 'Transfer-Encoding': 'chunked' }) + chunk('not all'),
      head(`POST ${target}`, oneOf(secrets), { 'Transfer-Encoding': 'chunked' }) + chunk('all') + LAST_CHUNK,
    ];
    stage.upstream.script = (exchange) => SCRIPTS[exchange.target]?.(exchange);
    const before = descriptors();
    const comeAndGo = async () => {
      const client = await stage.client(oneOf(requests(oneOf(Object.keys(SCRIPTS)))));
      const stayMs = oneOf([-1, 0, 1, 5, 20]);
      if (stayMs >= 0) await sleep(stayMs);
      if (random() < 0.5) client.destroy();
      else client.socket.resetAndDestroy();
    };
    for (let round = 0; round < 15; round++) await Promise.all(Array.from({ length: 20 }, comeAndGo));
    await stage.allDisconnected();
    await eventually('all descriptors are closed', () => descriptors() <= before);
  });

  it('D09 a hundred streams at once: each client gets its own events', async () => {
    const events = Array.from({ length: 20 }, (_, i) => `event ${i}\n\n`);
    stage.upstream.script = SCRIPTS['/v1/silent']!;
    const clients = await Promise.all(
      Array.from({ length: 100 }, (_, i) => stage.client(stage.get({}, `/v1/stream/${i}`))),
    );
    const { exchanges } = stage.upstream;
    await eventually('all are at the upstream', () => exchanges.length === clients.length);
    for (const exchange of exchanges) {
      exchange.send('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n');
    }
    for (const event of events) {
      for (const exchange of exchanges) exchange.send(chunk(`data: ${exchange.target} ${event}`));
      await sleep(1);
    }
    for (const exchange of exchanges) exchange.send(LAST_CHUNK);
    for (const [i, client] of clients.entries()) {
      const { text } = await client.response();
      expect(text).to.equal(events.map((event) => `data: /v1/stream/${i} ${event}`).join(''));
    }
    expect(await stage.uses()).to.equal(clients.length);
  });
});
