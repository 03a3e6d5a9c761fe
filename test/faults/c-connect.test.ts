import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { expect } from 'chai';
import { databaseAtRest } from '../support/at-rest.js';
import { Authority, selfSigned } from '../support/certificates.js';
import { TestClock } from '../support/clock.js';
import { eventually } from '../support/eventually.js';
import { overrideDns, trustTestNames } from '../support/network-overrides.js';
import { type RawClient } from '../support/raw.js';
import { expectRefusal, UNREACHABLE } from '../support/refusals.js';
import { type FaultFixture, staged } from './support/fault-fixture.js';

const CONNECT_TIMEOUT_MS = 10_000;
const DAY_MS = 86_400_000;

const portOf = (server: Server) => (server.address() as AddressInfo).port;

/** Expects a 502 to a GET and to a POST, at once, without the cause in it. */
async function expectUnreachable(
  stage: FaultFixture,
  clientOf = (bytes: string) => stage.client(bytes),
): Promise<void> {
  for (const bytes of [stage.get(), stage.post('{"a":1}')]) {
    const client = await clientOf(bytes);
    const answer = await client.response();
    expectRefusal(answer, UNREACHABLE);
    expect(answer.text).to.match(
      /^\{"error":"upstream unreachable","code":"upstream_unreachable","request_id":"[^"]+"\}$/,
    );
  }
  expect(stage.daemon.ended).to.have.lengthOf(2);
  for (const ended of stage.daemon.ended) expect(ended).to.include({ outcome: 'upstream_error', status: 502 });
  expect(await stage.uses(), 'uses: the upstream may have received it').to.equal(2);
  expect(Buffer.concat(stage.upstream.received).toString('latin1'), 'bytes at the upstream').to.equal('');
}

describe('C: an upstream that cannot be connected to', () => {
  const still = () => new TestClock({ standsStill: true });

  describe('because the connection is refused', () => {
    const { stage, it } = staged({ clock: still(), upstreamUrl: () => 'http://127.0.0.1:9' });
    it('C01 a refused connection gives 502 at once', () => expectUnreachable(stage));
  });

  describe('because its name does not exist', () => {
    const { stage, it } = staged({ clock: still(), upstreamUrl: () => 'http://provider.test' });
    let restore: () => void;
    before(() => {
      restore = overrideDns(() => null);
    });
    after(() => {
      restore();
    });
    it('C01 a name that does not exist gives 502 at once', () => expectUnreachable(stage));
  });

  describe('because it takes too long', () => {
    /** Expects a 502 when UPSTREAM_CONNECT_TIMEOUT has passed, and not before. */
    async function expectUnreachableInTime(stage: FaultFixture): Promise<void> {
      const { clock, daemon } = stage.daemon;
      await expectUnreachable(stage, async (bytes): Promise<RawClient> => {
        // The previous request and its records have timers too.
        await eventually('nothing is in flight', () => daemon.admission.size.inFlight === 0);
        daemon.scheduler.publishAll();
        await databaseAtRest(daemon);
        const timersBefore = clock.pending;
        const client = await stage.client(bytes);
        await eventually('it is forwarded', () => clock.pending >= timersBefore + 2); // The timers of the response and of the connection.
        await new Promise(setImmediate);
        clock.advance(CONNECT_TIMEOUT_MS - 1);
        expect(stage.daemon.daemon.admission.size.inFlight).to.equal(1);
        expect(client.pending.toString()).to.equal('');
        clock.advance(1);
        return client;
      });
    }
    const env = { UPSTREAM_CONNECT_TIMEOUT: `${CONNECT_TIMEOUT_MS}ms` };

    describe('to resolve its name', () => {
      const { stage, it } = staged({ clock: still(), env, upstreamUrl: () => 'http://provider.test' });
      let restore: () => void;
      before(() => {
        restore = overrideDns(() => undefined);
      });
      after(() => {
        restore();
      });
      it('C01 a name that does not resolve gives 502 after UPSTREAM_CONNECT_TIMEOUT', () =>
        expectUnreachableInTime(stage));
    });

    describe('to accept the connection', () => {
      let listener: ChildProcess;
      let port = 0;
      const fillers: Socket[] = [];
      before(async () => {
        // A process that listens, is blocked and has a full queue. The kernel ignores further connections.
        const script = `require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () { console.log(this.address().port) })`;
        listener = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
        const [said] = (await once(listener.stdout!, 'data')) as [Buffer];
        port = Number(said.toString());
        listener.kill('SIGSTOP');
        for (let i = 0; i < 8; i++) fillers.push(connect(port, '127.0.0.1').on('error', () => undefined));
        await eventually('the queue is full', () => fillers.filter((socket) => !socket.connecting).length >= 2);
      });
      const { stage, it } = staged({ clock: still(), env, upstreamUrl: () => `http://127.0.0.1:${port}` });
      after(() => {
        for (const socket of fillers) socket.destroy();
        listener.kill('SIGKILL');
      });
      it('C01 a connection that is not accepted gives 502 after UPSTREAM_CONNECT_TIMEOUT', () =>
        expectUnreachableInTime(stage));
    });

    describe('to complete the TLS handshake', () => {
      const silent = createServer();
      const sockets: Socket[] = [];
      before(async () => {
        silent.on('connection', (socket) => sockets.push(socket.on('error', () => undefined)));
        silent.listen(0, '127.0.0.1');
        await once(silent, 'listening');
      });
      const { stage, it } = staged({
        clock: still(),
        env,
        upstreamUrl: () => `https://127.0.0.1:${portOf(silent)}`,
      });
      after(() => {
        for (const socket of sockets) socket.destroy();
        silent.close();
      });
      it('C01 a TLS handshake that does not finish gives 502 after UPSTREAM_CONNECT_TIMEOUT', () =>
        expectUnreachableInTime(stage));
    });
  });

  describe('because it does not speak TLS', () => {
    const plain = createServer((socket) => {
      socket.on('error', () => undefined).once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    });
    before(async () => {
      plain.listen(0, '127.0.0.1');
      await once(plain, 'listening');
    });
    const { stage, it } = staged({ clock: still(), upstreamUrl: () => `https://127.0.0.1:${portOf(plain)}` });
    after(() => plain.close());
    it('C01 an upstream without TLS at an https URL gives 502 at once', () => expectUnreachable(stage));
  });

  describe('because of its certificate', () => {
    const name = 'provider.test';
    const authority = new Authority();
    const toName = (url: string) => url.replace('127.0.0.1', name);
    trustTestNames(authority.certificate);

    const REFUSED = {
      'is self-signed': selfSigned({ name }),
      'was issued by an unknown CA': new Authority('A stranger').issue({ name }),
      'has expired': authority.issue({
        name,
        from: new Date(Date.now() - 2 * DAY_MS),
        to: new Date(Date.now() - DAY_MS),
      }),
      'is not valid yet': authority.issue({
        name,
        from: new Date(Date.now() + DAY_MS),
        to: new Date(Date.now() + 2 * DAY_MS),
      }),
      'is for another host': authority.issue({ name: 'other.test' }),
    };
    for (const [what, certificate] of Object.entries(REFUSED)) {
      describe(`which ${what}`, () => {
        const { stage, it } = staged({ clock: still(), certificate, upstreamUrl: toName });
        it('C01 C34 an invalid certificate gives 502 at once', () => expectUnreachable(stage));

        it('C34 an invalid certificate gives 502 even if the environment turns certificate checks off', async () => {
          process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
          try {
            await expectUnreachable(stage);
          } finally {
            delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
          }
        });
      });
    }

    describe('or can be, because the certificate is valid', () => {
      const { stage, it } = staged({ certificate: authority.issue({ name }), upstreamUrl: toName });
      it('C34 an upstream with a valid certificate is reached', async () => {
        expect((await stage.ask(stage.post('{"a":1}'))).text).to.equal('{"ok":true}');
        expect((await stage.upstream.only()).all('host')).to.deep.equal([new URL(toName(stage.upstream.url)).host]);
      });

      it('C07 a GET on an idle TLS connection that the upstream closes is repeated', async () => {
        expect((await stage.ask(stage.get())).status).to.equal(200);
        stage.upstream.script = (exchange) => {
          if (exchange.isReused) exchange.fin();
          else exchange.respond(200, '', '"again"');
        };
        expect((await stage.ask(stage.get())).text).to.equal('"again"');
        expect(stage.upstream.exchanges.map(({ isReused }) => isReused)).to.deep.equal([false, true, false]);
      });
    });
  });
});

describe('C: an upstream that moves to another address', () => {
  const MINUTE_MS = 60_000;
  const [oldAddress, newAddress] = ['127.0.0.1', '127.0.0.2'];
  let address = oldAddress;
  let restore: () => void;
  before(() => {
    restore = overrideDns(() => address);
  });
  const { stage, it } = staged({ upstreamUrl: (url) => url.replace(oldAddress, 'provider.test') });
  after(() => {
    restore();
  });

  it('C33 when the upstream moves to another address, the new address is used within a minute, even with busy connections', async () => {
    await stage.upstream.listen(Number(new URL(stage.upstream.url).port), newAddress);
    const { clock } = stage.daemon;
    const asked: unknown[] = [];
    stage.upstream.script = (exchange) => {
      asked.push(exchange.socket.localAddress);
      exchange.respond(200, 'Keep-Alive: timeout=120\r\n'); // The upstream connection may be idle for as long as the clock is moved.
    };
    await stage.ask(stage.get());
    address = newAddress;
    clock.advance(MINUTE_MS - 1_000);
    await stage.ask(stage.get());
    clock.advance(1_001);
    await stage.ask(stage.get());
    expect(stage.upstream.exchanges.at(-1)!.all('connection'), 'the last one on it').to.deep.equal(['close']);
    await stage.ask(stage.get());
    expect(stage.upstream.exchanges.map(({ isReused }) => isReused)).to.deep.equal([false, true, true, false]);
    expect(asked).to.deep.equal([oldAddress, oldAddress, oldAddress, newAddress]);
  });
});
