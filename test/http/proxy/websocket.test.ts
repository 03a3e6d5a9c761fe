import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { expect } from 'chai';
import OpenAI from 'openai';
import { OpenAIRealtimeWebSocket } from 'openai/realtime/websocket';
import { WebSocket } from 'ws';
import { TestClock } from '../../support/clock.js';
import { startDaemon } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { frameOf } from '../../support/frames.js';
import { ask, head, RawClient, startRawProvider, WEBSOCKET } from '../../support/raw.js';
import { nextMessage, Realtime } from '../../support/realtime.js';
import { expectRefusal, UNAUTHORIZED, UNAVAILABLE, UNREACHABLE } from '../../support/refusals.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { writeUntilItStalls } from '../../support/stall.js';

const SECOND_MS = 1000;
const IDLE_MS = 120 * SECOND_MS;

const ACCEPT = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

// The protocol byte by byte, and failures, are in test/faults/upgrades.test.ts.
describe('a WebSocket on /v1', () => {
  const { scene, realtime } = Realtime.forSuite({ WEBSOCKET_IDLE_TIMEOUT: '120s' });

  const begin = () => realtime.begin(scene.daemon.url, scene.secret);

  it('carries text and binary messages both ways, and costs one use', async () => {
    const { client, socket } = await begin();
    const large = 'ö'.repeat(300_000);
    for (const [from, to] of [
      [client, socket],
      [socket, client],
    ] as const) {
      for (const [sent, isBinary] of [
        ['{"type":"response.create"}', false],
        [Buffer.from([0, 1, 255]), true],
        [large, false],
      ] as const) {
        const arriving = once(to, 'message') as Promise<[Buffer, boolean]>;
        from.send(sent);
        const [received, wasBinary] = await arriving;
        expect(received.equals(Buffer.from(sent))).to.equal(true);
        expect(wasBinary).to.equal(isBinary);
      }
    }
    expect(await scene.uses()).to.equal(1);
  });

  it('lets client and provider agree on a subprotocol, but not on compression', async () => {
    const client = realtime.client(`${scene.daemon.url}/v1/realtime`, scene.secret, ['realtime', 'other']);
    await once(client, 'open');
    expect(client.protocol).to.equal('realtime');
    expect(client.extensions).to.equal('');
    const { socket } = realtime.conversations[0]!;
    const hearing = nextMessage(socket);
    client.send('x'.repeat(100_000));
    expect(await hearing).to.have.lengthOf(100_000);
  });

  it('is recorded once, after it has ended, with its outcome', async () => {
    const { client } = await begin();
    expect(scene.daemon.ended).to.be.empty;
    client.close();
    const ended = await scene.onlyRecord();
    const { project, token } = scene;
    expect(ended).to.include({ status: 101, outcome: 'ok', method: 'GET', path: '/v1/realtime', code: null });
    expect(ended).to.include({ projectId: project.id, tokenId: token.id });
    await scene.end();
    await scene.onlyRecord();
  });

  it('closes with the code that either side sends', async () => {
    for (const [from, to] of [
      ['client', 'socket'],
      ['socket', 'client'],
    ] as const) {
      const both = await begin();
      const closing = once(both[to], 'close') as Promise<[number, Buffer]>;
      both[from].close(4001, 'enough');
      const [code, reason] = await closing;
      expect({ code, reason: reason.toString() }).to.deep.equal({ code: 4001, reason: 'enough' });
    }
  });

  describe("OpenAI's client for browsers, which cannot set Authorization", () => {
    before(() => {
      // Node 20 has no WebSocket client.
      (globalThis as { WebSocket?: unknown }).WebSocket ??= WebSocket;
    });

    it('connects with the token as its API key, which the provider does not see', async () => {
      const openai = new OpenAI({ baseURL: `${scene.daemon.url}/v1`, apiKey: scene.secret });
      const onURL = (url: URL) => {
        url.protocol = 'ws:'; // The client always uses TLS.
      };
      const client = new OpenAIRealtimeWebSocket({ model: 'gpt-realtime', onURL }, openai);
      await eventually('it is at the provider', () => realtime.conversations.length > 0);
      const { socket, req } = realtime.conversations[0]!;
      expect(req.headers['sec-websocket-protocol']).to.equal('realtime');
      expect(JSON.stringify(req.rawHeaders)).not.to.contain(scene.secret);
      const hearing = nextMessage(socket);
      await eventually('it is open', () => client.socket.readyState === client.socket.OPEN);
      client.send({ type: 'response.create' });
      expect(await hearing).to.equal('{"type":"response.create"}');
      const created = new Promise((resolve) => client.once('session.created', resolve));
      socket.send('{"type":"session.created"}');
      await created;
      client.close();
    });
  });

  describe('is ended', () => {
    const setProject = ({ daemon, project }: ProxyFixture, isActive: boolean) =>
      daemon.manage('PATCH', `/manage/projects/${project.id}`, { is_active: isActive });
    const CHANGES: Record<string, { act: (at: ProxyFixture) => Promise<unknown>; status: number }> = {
      'its token is revoked': {
        act: ({ daemon, token }) => daemon.manage('DELETE', `/manage/tokens/${token.id}`),
        status: 401,
      },
      "all its project's tokens are": {
        act: ({ daemon, project }) => daemon.manage('POST', `/manage/projects/${project.id}/tokens/revoke`),
        status: 401,
      },
      'its project is deactivated': { act: (at) => setProject(at, false), status: 403 },
    };
    afterEach(() => setProject(scene, true));

    for (const [what, { act, status }] of Object.entries(CHANGES)) {
      it(`within a second when ${what}, on both sides`, async () => {
        const { client, socket } = await begin();
        const closed = Promise.all([once(client, 'close'), once(socket, 'close')]);
        const begunAtMs = performance.now();
        await act(scene);
        await closed;
        expect(performance.now() - begunAtMs).to.be.below(SECOND_MS);
        expect(await scene.onlyRecord()).to.include({ outcome: 'revoked', status: 101 });
      });

      it(`by a ${status} when ${what} before the provider has responded`, async () => {
        const upstream = await startRawProvider(() => undefined);
        const other = await ProxyFixture.open({}, upstream.url);
        try {
          const client = await other.client(head('GET /v1/realtime', other.secret, WEBSOCKET));
          await eventually('it is at the provider', () => upstream.requests === 1);
          await act(other);
          expect((await client.response()).status).to.equal(status);
          await client.closed;
          expect(await other.onlyRecord()).to.include({ outcome: 'revoked', status });
          await eventually('the provider connection is closed', () => upstream.connections === 0);
        } finally {
          await other.close();
          await upstream.stop();
        }
      });
    }

    it('by a 401 when its token is revoked during admission', async () => {
      const { admission } = scene.daemon.daemon;
      admission.admit = async (secret) => {
        Reflect.deleteProperty(admission, 'admit');
        const pass = await admission.admit(secret);
        await scene.daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`);
        return pass;
      };
      const client = await scene.client(head('GET /v1/realtime', scene.secret, WEBSOCKET));
      expectRefusal(await client.response(), UNAUTHORIZED);
      expect(await scene.onlyRecord()).to.include({ outcome: 'revoked', status: 401 });
      expect(realtime.conversations).to.be.empty;
    });

    it('after WEBSOCKET_IDLE_TIMEOUT without data from either side', async () => {
      const { client, socket } = await begin();
      const closed = Promise.all([once(client, 'close'), once(socket, 'close')]);
      scene.daemon.clock.advance(IDLE_MS - SECOND_MS);
      expect(scene.daemon.ended, 'not yet').to.be.empty;
      scene.daemon.clock.advance(SECOND_MS);
      await closed;
      expect(await scene.onlyRecord()).to.include({ outcome: 'timeout', status: 101 });
    });

    it('not while one side is silent and the other sends, even if only pings', async () => {
      const { client, socket } = await begin();
      for (const [from, to] of [
        [client, socket],
        [socket, client],
      ] as const) {
        for (let i = 0; i < 4; i++) {
          scene.daemon.clock.advance(IDLE_MS - SECOND_MS);
          const pinged = once(to, 'ping');
          from.ping();
          await pinged;
        }
      }
      expect(scene.daemon.ended).to.be.empty;
    });
  });
});

describe('a WebSocket whose token expires', () => {
  const HOUR_MS = 3600 * SECOND_MS;
  let scene: ProxyFixture;
  let realtime: Realtime;
  beforeEach(async () => {
    scene = await ProxyFixture.open({ WEBSOCKET_IDLE_TIMEOUT: '2h' });
    realtime = new Realtime(scene.provider);
  });
  afterEach(async () => {
    realtime.end();
    realtime.close();
    await scene.close();
  });

  const TIMES: Record<string, (pass: (ms: number) => void) => void> = {
    'as time passes': (pass) => {
      pass(5 * SECOND_MS);
    },
    'when the clock on the wall is set forward': (pass) => {
      scene.daemon.clock.setWall(10 * SECOND_MS);
      pass(60 * SECOND_MS);
    },
  };
  for (const [what, begins] of Object.entries(TIMES)) {
    it(`is ended at its expiry, on both sides, ${what}`, async () => {
      const { daemon, project } = scene;
      const hour = await daemon.createToken(project.id, { duration_hours: 1 });
      const { client, socket } = await realtime.begin(daemon.url, hour.token);
      const closed = Promise.all([once(client, 'close'), once(socket, 'close')]);
      daemon.clock.advance(Date.parse(hour.expires_at) - daemon.clock.now() - 5 * SECOND_MS);
      const arrived = once(socket, 'message');
      client.send('still there');
      await arrived;
      begins((ms) => {
        daemon.clock.advance(ms);
      });
      await closed;
      expect(await scene.onlyRecord()).to.include({ outcome: 'revoked', status: 101 });
      expect(daemon.clock.now()).to.be.at.least(Date.parse(hour.expires_at));
    });
  }

  it('is ended immediately if the provider accepts it after the expiry', async () => {
    const upstream = await startRawProvider((socket) => {
      other.daemon.clock.advance(HOUR_MS + SECOND_MS);
      socket.write(ACCEPT);
    });
    const other = await ProxyFixture.open({ REQUEST_TIMEOUT: '2h', UPSTREAM_CONNECT_TIMEOUT: '2h' }, upstream.url);
    try {
      const { token } = await other.daemon.createToken(other.project.id, { duration_hours: 1 });
      const client = await other.client(head('GET /v1/realtime', token, WEBSOCKET));
      await client.closed;
      expect(await other.onlyRecord()).to.include({ outcome: 'revoked' });
      await eventually('the provider connection is closed', () => upstream.connections === 0);
    } finally {
      await other.close();
      await upstream.stop();
    }
  });
});

describe('a WebSocket whose reader has stopped', function () {
  this.timeout(60_000); // A kernel that is short of socket memory drops unread data, and retransmits it with growing delays.
  // More than the kernel buffers in two loopback connections.
  const MOST_UNDERWAY_BYTES = 40e6;
  const TOTAL_BYTES = 60e6;
  const MESSAGE = frameOf(Buffer.alloc(64 * 1024, 'x'), { opcode: 2, isMasked: true });
  let upstream: Server;
  let upstreamEnd: Promise<Socket>;
  let scene: ProxyFixture;
  let client: Socket;

  /** @param answer response to the handshake. */
  async function begin(answer: string): Promise<void> {
    upstream = createServer().listen(0, '127.0.0.1');
    await once(upstream, 'listening');
    upstreamEnd = once(upstream, 'connection').then(async ([socket]: Socket[]) => {
      await once(socket!, 'data');
      socket!.pause().removeAllListeners('data').write(answer);
      return socket!;
    });
    scene = await ProxyFixture.open({}, `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`);
    client = connect(Number(new URL(scene.daemon.url).port), '127.0.0.1');
    client.write(head('GET /v1/realtime', scene.secret, WEBSOCKET));
    await once(client, 'data');
    client.pause().removeAllListeners('data');
  }
  afterEach(async () => {
    client.destroy();
    (await upstreamEnd).destroy();
    await scene.close();
    upstream.close();
  });

  /** `to` starts to read after `from` is blocked. */
  async function expectHeldUp(from: Socket, to: Socket): Promise<void> {
    expect(await writeUntilItStalls(from, TOTAL_BYTES, MESSAGE)).to.be.below(MOST_UNDERWAY_BYTES);
    let bytes = 0;
    to.on('data', (piece: Buffer) => {
      bytes += piece.length;
    });
    to.resume();
    await once(to, 'end');
    expect(bytes).to.equal(TOTAL_BYTES);
  }

  it('blocks the client, and gets everything once it reads', async () => {
    await begin(ACCEPT);
    await expectHeldUp(client, await upstreamEnd);
  });

  it('blocks the provider, and gets everything once it reads', async () => {
    await begin(ACCEPT);
    await expectHeldUp(await upstreamEnd, client);
  });

  it('blocks the provider also when the provider declines the upgrade', async () => {
    await begin(`HTTP/1.1 400 No\r\nContent-Length: ${TOTAL_BYTES}\r\n\r\n`);
    await expectHeldUp(await upstreamEnd, client);
    expect(await scene.onlyRecord()).to.include({ outcome: 'upstream_refused', status: 400 });
  });
});

describe('connections to the upstream', () => {
  it('count together with those of requests: above UPSTREAM_CONNECTIONS the response is 503 in time', async () => {
    const scene = await ProxyFixture.open({ UPSTREAM_CONNECTIONS: '1', UPSTREAM_CONNECT_TIMEOUT: '5s' });
    const realtime = new Realtime(scene.provider);
    try {
      const { client } = await realtime.begin(scene.daemon.url, scene.secret);
      const request = await scene.client(head('GET /v1/models', scene.secret));
      const second = await scene.client(head('GET /v1/realtime', scene.secret, WEBSOCKET));
      await scene.inFlight(3);
      scene.daemon.clock.advance(5 * SECOND_MS);
      expectRefusal(await request.response(), UNAVAILABLE);
      expectRefusal(await second.response(), UNAVAILABLE);
      expect(await scene.uses()).to.equal(1);

      const waiting = realtime.client(`${scene.daemon.url}/v1/realtime`, scene.secret);
      await scene.inFlight(2);
      client.close();
      await once(waiting, 'open');
    } finally {
      realtime.close();
      await scene.close();
    }
  });

  it('are not opened for clients that have left the queue', async () => {
    const scene = await ProxyFixture.open({ UPSTREAM_CONNECTIONS: '1', UPSTREAM_CONNECT_TIMEOUT: '60s' });
    const realtime = new Realtime(scene.provider);
    try {
      const { client } = await realtime.begin(scene.daemon.url, scene.secret);
      const { clock, daemon } = scene.daemon;
      await daemon.admission.readBetweenTicks(() => Promise.resolve());
      const timersBefore = clock.pending;
      const waiting = await scene.client(head('GET /v1/realtime', scene.secret, WEBSOCKET));
      await scene.inFlight(2);
      waiting.destroy();
      await scene.inFlight(1);
      clock.advance(6_000); // What is written every five seconds has its own timer.
      await eventually('it stops waiting', () => clock.pending <= timersBefore);
      expect(await scene.onlyRecord()).to.include({ outcome: 'client_closed', status: 499 });
      client.close();
      await scene.inFlight(0);
      expect(realtime.conversations).to.have.lengthOf(1);
      await realtime.begin(scene.daemon.url, scene.secret);
    } finally {
      realtime.close();
      await scene.close();
    }
  });

  it('can use an IPv6 address', async function () {
    const upstream = createServer((socket) => {
      socket.once('data', (bytes) => {
        socket.end(/^Host: \[::1\]:\d+\r$/im.test(bytes.toString()) ? ACCEPT : '');
      });
    }).listen(0, '::1');
    const isThere = await once(upstream, 'listening').then(
      () => true,
      () => false,
    );
    if (!isThere) this.skip();
    const scene = await ProxyFixture.open({}, `http://[::1]:${(upstream.address() as AddressInfo).port}`);
    try {
      const client = await scene.client(head('GET /v1/realtime', scene.secret, WEBSOCKET));
      expect((await client.response()).status).to.equal(101);
    } finally {
      await scene.close();
      upstream.close();
    }
  });

  for (const [what, url] of [
    ['no server listens', () => 'http://127.0.0.1:9'],
    // It accepts connections but sends nothing, so the TLS handshake never completes.
    ['they do not come about within UPSTREAM_CONNECT_TIMEOUT', (silent: string) => silent.replace('http:', 'https:')],
  ] as const) {
    it(`that cannot be established are 502: ${what}`, async () => {
      const silent = await startRawProvider(() => undefined);
      const scene = await ProxyFixture.open({ UPSTREAM_CONNECT_TIMEOUT: '5s' }, url(silent.url));
      try {
        const client = await scene.client(head('GET /v1/realtime', scene.secret, WEBSOCKET));
        if (what !== 'no server listens') {
          await eventually('it connects', () => silent.connections === 1);
          expect(scene.daemon.ended).to.be.empty;
          scene.daemon.clock.advance(5 * SECOND_MS);
        }
        expectRefusal(await client.response(), UNREACHABLE);
        expect(await scene.onlyRecord()).to.include({ outcome: 'upstream_error', status: 502 });
        await eventually('everything is released', () => silent.connections === 0);
      } finally {
        await scene.close();
        await silent.stop();
      }
    });
  }
});

describe('a stopping daemon with an open WebSocket', () => {
  let scene: ProxyFixture;
  let realtime: Realtime;
  let stopped: Promise<void>;

  beforeEach(async () => {
    scene = await ProxyFixture.open({ SHUTDOWN_DELAY: '5s', SHUTDOWN_GRACE: '30s' });
    realtime = new Realtime(scene.provider);
  });
  afterEach(async () => {
    realtime.close();
    await scene.end();
    await stopped;
    await scene.provider.stop();
  });

  const stop = async () => {
    stopped = scene.daemon.daemon.stop();
    scene.daemon.clock.advance(5 * SECOND_MS);
    await eventually('it stops listening', () => !scene.daemon.daemon.server.listening);
  };

  it('keeps it open, and stops after it has ended', async () => {
    const { client, socket } = await realtime.begin(scene.daemon.url, scene.secret);
    await stop();
    const hearing = nextMessage(socket);
    client.send('last words');
    expect(await hearing).to.equal('last words');
    client.close();
    await stopped;
    expect(await scene.onlyRecord()).to.include({ outcome: 'ok', status: 101 });
  });

  it('keeps it open also on a connection that carried requests before', async () => {
    const client = await scene.client(head('GET /v1/models', scene.secret));
    expect((await client.response()).status).to.equal(200);
    client.send(head('GET /v1/realtime', scene.secret, WEBSOCKET));
    expect((await client.response()).status).to.equal(101);
    const { socket } = realtime.conversations[0]!;
    await stop();
    scene.daemon.clock.advance(SECOND_MS); // Idle connections are closed periodically.
    socket.send('still there');
    await client.seen('still there');
    socket.terminate();
    await stopped;
    expect(scene.daemon.ended.map(({ status, outcome }) => ({ status, outcome }))).to.deep.equal([
      { status: 200, outcome: 'ok' },
      { status: 101, outcome: 'ok' },
    ]);
  });

  it('cuts it after SHUTDOWN_GRACE, with the outcome drained', async () => {
    const { client, socket } = await realtime.begin(scene.daemon.url, scene.secret);
    const closed = Promise.all([once(client, 'close'), once(socket, 'close')]);
    await stop();
    scene.daemon.clock.advance(29 * SECOND_MS);
    expect(scene.daemon.ended, 'not yet').to.be.empty;
    scene.daemon.clock.advance(SECOND_MS);
    await closed;
    await stopped;
    expect(await scene.onlyRecord()).to.include({ outcome: 'drained', status: 101 });
  });
});

describe('a handshake without a response while the daemon stops', () => {
  it('gets 503, and the daemon does not wait for the client', async () => {
    const upstream = await startRawProvider(() => undefined);
    // The clock stands still, so any wait would never end.
    const clock = new TestClock({ standsStill: true });
    const { daemon, ended, ...at } = await startDaemon({ upstream: upstream.url, clock });
    const { token } = await at.createToken((await at.createProject()).id);
    const stubborn = connect({ port: Number(new URL(at.url).port), host: '127.0.0.1', allowHalfOpen: true });
    stubborn.write(head('GET /v1/realtime', token, WEBSOCKET));
    await eventually('it is at the provider', () => upstream.requests === 1);
    const stopped = daemon.stop();
    clock.advance(0);
    await eventually('it stops listening', () => !daemon.server.listening);
    clock.advance(0);
    const [answer] = (await once(stubborn, 'data')) as [Buffer];
    expect(answer.toString()).to.match(/^HTTP\/1\.1 503 /);
    await stopped;
    expect(ended).to.have.lengthOf(1);
    expect(ended[0]).to.include({ outcome: 'drained', status: 503 });
    stubborn.destroy();
    await upstream.stop();
  });
});

describe('a request to a listener that serves only /manage', () => {
  it('is never an upgrade', async () => {
    const scene = await ProxyFixture.open({ MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0' });
    try {
      const client = await RawClient.to(scene.daemon.managementUrl);
      client.send(head('GET /v1/realtime', scene.secret, WEBSOCKET));
      expect((await client.response()).status).to.equal(404);
      client.destroy();
    } finally {
      await scene.close();
    }
  });
});

describe('a daemon with pending migrations', () => {
  it('answers 503 to a handshake', async () => {
    const daemon = await startDaemon({ env: { AUTO_MIGRATE: 'false' } });
    try {
      const request = head('GET /v1/realtime', `sk-wt-${'0'.repeat(49)}`, WEBSOCKET);
      expectRefusal(await ask(daemon.url, request), UNAVAILABLE);
    } finally {
      await daemon.stop();
    }
  });
});

describe('http-proxy', function () {
  this.timeout(60_000); // It starts another process.

  it('calls nothing for which Node prints a warning', async () => {
    const program = `
      import { Socket } from 'node:net';
      import util from 'node:util';
      // As in Node 22.
      const given = (util._extend = util.deprecate(Object.assign, 'util._extend is deprecated', 'DEP0060'));
      const { upgradesAt } = await import(${JSON.stringify(new URL('../../../daemon/http/proxy/http-proxy.js', import.meta.url))});
      if (util._extend !== given) throw new Error('it stays changed for others');
      const headers = { upgrade: 'websocket' };
      upgradesAt(new URL('http://127.0.0.1:9'))({ target: '/', headers, socket: new Socket() }, { fail() {} });
      console.log('called');
      setImmediate(() => process.exit());
    `;
    const run = promisify(execFile);
    const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '--eval', program]);
    expect({ stdout, stderr }).to.deep.equal({ stdout: 'called\n', stderr: '' });
  });
});
