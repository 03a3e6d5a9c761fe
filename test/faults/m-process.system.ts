import { execFileSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { Agent, get as httpGet } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { linesOf, usesFile } from '../support/audit-files.js';
import { temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { makeDatabaseUnreachable } from '../support/database-outage.js';
import { json } from '../support/provider.js';
import { head, RawClient } from '../support/raw.js';
import { expectRefusal, UNAVAILABLE } from '../support/refusals.js';
import { ProxyFixture } from '../support/proxy-fixture.js';
import { sumOf } from '../support/scrape.js';
import { restartRepeatedly } from './support/restarts.js';
import { ServedDaemon, type ServedDaemonOptions } from './support/served-daemon.js';

const SECOND_MS = 1_000;

/** Blocks the only thread of a daemon. */
const BLOCKED_MS = 2_000;
const STANDS_STILL = `const until = Date.now() + ${BLOCKED_MS}; while (Date.now() < until);`;

const HEAP_MB = 256;
/** Fills the heap almost completely, and frees it at the next signal. */
const FILLS_HEAP = `
  globalThis.isFilled = !globalThis.isFilled;
  globalThis.filling = [];
  const { getHeapSpaceStatistics } = process.getBuiltinModule('node:v8');
  const used = (isCounted) =>
    getHeapSpaceStatistics().reduce((sum, { space_name: name, space_used_size: used }) => sum + (isCounted(name) ? used : 0), 0);
  const fullness = () => used(() => true) / (${HEAP_MB} * 2 ** 20);
  const fullnessOfOld = () => used((name) => !name.startsWith('new_')) / (${HEAP_MB} * 2 ** 20);
  do {
    while (globalThis.isFilled && fullness() < 0.94) globalThis.filling.push(new Array(100_000).fill(0.5));
    globalThis.gc();
  } while (globalThis.isFilled && fullnessOfOld() < 0.92);
  process.stderr.write(globalThis.isFilled ? 'filled\\n' : 'empty\\n');`;

describe('M: a process', function () {
  this.timeout(60_000);
  let served: ServedDaemon;

  const start = async (options: ServedDaemonOptions = {}) => {
    served = await ServedDaemon.start(options);
  };
  afterEach(() => served.stop());

  const statusOf = async (path: string) => (await served.probe(path)).status;
  const says = (text: string) => eventually(`it reports ${text}`, () => served.process.printed.stderr.includes(text));

  /** A client in the middle of an event stream. */
  async function stream(): Promise<RawClient> {
    const client = await served.client(head('GET /v1/stream', served.secret));
    await client.seen('data: first\n\n');
    return client;
  }

  /** Streams never end, and short requests wait until `finish`. */
  function answerSlowly(): { finish: () => void } {
    const waiting: (() => void)[] = [];
    served.provider.answer = (_req, res, { url }) => {
      if (url === '/v1/stream') {
        res.writeHead(200, { 'Content-Type': 'text/event-stream' });
        res.write('data: first\n\n');
      } else if (url === '/v1/short') {
        waiting.push(() => {
          json(res, 200, { short: true });
        });
      } else {
        json(res, 200, {});
      }
    };
    return {
      finish: () => {
        for (const each of waiting.splice(0)) each();
      },
    };
  }

  it('M01 SIGTERM: short requests finish, requests are served until it stops listening, streams are cut, and everything is recorded', async () => {
    await start({ env: { SHUTDOWN_DELAY: '1s', SHUTDOWN_GRACE: '2s' } });
    const { finish } = answerSlowly();
    const idle = await Promise.all(
      Array.from({ length: 20 }, () => served.client(head('GET /v1/idle', served.secret))),
    );
    for (const client of idle) expect((await client.response()).status).to.equal(200);
    const streams = await Promise.all(Array.from({ length: 50 }, stream));
    const short = Array.from({ length: 50 }, () => served.get('/v1/short'));
    await eventually('all have arrived', () => served.provider.received.length === 120);

    served.process.child.kill('SIGTERM');
    await eventually('it is not ready', async () => (await statusOf('/ready')) === 503);
    expect((await served.get('/v1/idle')).status).to.equal(200);
    finish();
    for (const answer of await Promise.all(short)) expect(answer.json).to.deep.equal({ short: true });
    await Promise.all(idle.map(({ closed }) => closed));
    await Promise.all(streams.map(({ closed }) => closed));
    for (const cut of streams) expect(await cut.response().catch(() => 'not complete')).to.equal('not complete');
    expect(await served.process.exit).to.equal(0);
    const outcomes = linesOf(usesFile(served)).map(({ details }) => details?.outcome);
    expect(outcomes).to.have.length(121);
    expect(outcomes.filter((outcome) => outcome === 'drained')).to.have.length(50);
  });

  it('M03 SIGTERM: keep-alive connections lose no request', async () => {
    await start({ env: { SHUTDOWN_DELAY: '1s' } });
    const agent = new Agent({ keepAlive: true });
    const call = () =>
      new Promise<number | string>((resolve) => {
        const headers = { authorization: `Bearer ${served.secret}` };
        const request = httpGet(`${served.url}/v1/models`, { agent, headers }, (answer) => {
          answer.resume().on('end', () => {
            resolve(answer.statusCode ?? 0);
          });
        });
        request.on('error', (error: NodeJS.ErrnoException) => {
          // The system resets a connection that was queued at the moment in which the daemon stops listening. Clients that check /ready
          // avoid this.
          const isNew = !request.reusedSocket && error.code === 'ECONNRESET';
          resolve(isNew ? 'ECONNREFUSED' : (error.code ?? error.message));
        });
      });
    const seen: (number | string)[] = [];
    const callers = Array.from({ length: 10 }, async () => {
      for (let said: number | string = 200; said === 200;) seen.push((said = await call()));
    });
    await eventually('all connections are in use', () => seen.length > 50);
    served.process.child.kill('SIGTERM');
    await Promise.all(callers);
    agent.destroy();
    expect(new Set(seen)).to.deep.equal(new Set([200, 'ECONNREFUSED']));
    expect(await served.process.exit).to.equal(0);
  });

  it('M05 repeated kills and stops: no file is left, and the daemon starts each time', async () => {
    served = await restartRepeatedly(3);
  });

  it('M06 few descriptors and many clients: it serves those that fit, stays usable otherwise, and recovers', async function () {
    if (process.platform !== 'linux') this.skip();
    await start({ under: ['prlimit', '--nofile=256:256'] });
    expect(served.process.logged.join()).to.include('limit of open files is too low');
    const open = () => readdirSync(`/proc/${served.pid}/fd`).length;
    const before = open();
    const crowd: RawClient[] = [];
    const connecting = Array.from({ length: 1_000 }, async () => {
      const client = await RawClient.to(served.url).catch(() => null);
      if (!client) return;
      crowd.push(client);
      client.send(head('GET /v1/models', served.secret));
    });
    await Promise.all(connecting);
    const statuses = new Set(
      await Promise.all(
        crowd.map((client) =>
          client.response().then(
            ({ status }) => status,
            () => null,
          ),
        ),
      ),
    );
    expect([...statuses].filter((status) => status !== null && status !== 200 && status !== 503)).to.deep.equal([]);
    expect(statuses).to.include(200);
    // Connections never use the descriptors that are reserved for the database.
    const kept = await Promise.all(Array.from({ length: 300 }, () => RawClient.to(served.url).catch(() => null)));
    expect(open()).to.be.below(256 - 16);
    for (const client of [...crowd, ...kept]) client?.destroy();
    await eventually('they are closed', () => open() <= before + 100);
    expect((await served.get()).status).to.equal(200);
    expect((await served.management.token(served.tokenId)).is_active).to.equal(true);
  });

  it('M07 an event loop that was blocked for two seconds shows in the metrics, and no timeout is recorded for data that arrived in time', async () => {
    await start({
      atSignal: STANDS_STILL,
      env: { ENABLE_METRICS: 'true', REQUEST_TIMEOUT: '1s', UPSTREAM_CONNECT_TIMEOUT: '1s' },
    });
    await served.metrics();
    let answer: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => {
      served.provider.answer = (_req, res) => {
        answer = () => {
          json(res, 200, {});
        };
        resolve();
      };
    });
    const waiting = served.get();
    await asked;
    served.signal();
    // The upstream responds in time, and the daemon is blocked.
    await eventually('it is blocked', async () => {
      const probe = served.probe('/live');
      const first = await Promise.race([
        probe.then(() => 'answered'),
        new Promise((resolve) => setTimeout(resolve, 100, 'silent')),
      ]);
      return first === 'silent';
    });
    answer();
    expect((await waiting).status).to.equal(200);
    const series = await served.metrics();
    expect(sumOf(series, 'nodejs_eventloop_lag_max_seconds')).to.be.above(1);
    expect(sumOf(series, 'llmp_upstream_failures_total')).to.equal(0);
  });

  it('M08 the heap is almost full: new requests get 503, it is not ready, requests in flight finish, and it serves again when there is space', async () => {
    await start({
      atSignal: FILLS_HEAP,
      nodeOptions: [`--max-old-space-size=${HEAP_MB}`, '--expose-gc'],
      env: { ENABLE_METRICS: 'true' },
    });
    const { finish } = answerSlowly();
    const short = served.get('/v1/short');
    await eventually('it has arrived', () => served.provider.received.length === 1);
    served.signal();
    await says('filled');
    const refused = await served.get('/v1/new');
    expectRefusal(refused, UNAVAILABLE);
    expect(refused.header('retry-after')).to.match(/^[1-9]\d*$/);
    expect(await statusOf('/live')).to.equal(200);
    const ready = await served.probe('/ready');
    expect(ready.status).to.equal(503);
    expect(ready.json).to.deep.include({ status: 'not ready', missing: ['memory'] });
    expect((await served.probe('/health')).json).to.deep.include({ status: 'failing' });
    expect((await served.management.status()).missing).to.deep.equal(['memory']);
    finish();
    expect((await short).json).to.deep.equal({ short: true });
    expect(served.provider.received).to.have.length(1);
    served.signal();
    await says('empty');
    await eventually('it serves', async () => (await served.get('/v1/new')).status === 200);
    expect(await statusOf('/ready')).to.equal(200);
    expect(sumOf(await served.metrics(), 'llmp_requests_shed_total')).to.be.at.least(1);
  });

  it('M10 all threads of the pool hang: the daemon still connects to the upstream', async function () {
    if (process.platform !== 'linux') this.skip();
    const pipe = join(temporaryFolder(), 'pipe');
    execFileSync('mkfifo', [pipe]);
    const hangs = `
      const { open } = process.getBuiltinModule('node:fs');
      for (let n = 0; n < 8; n++) open('${pipe}', 'r', () => process.stderr.write('free'));
      process.stderr.write('hanging');`;
    await start({ atSignal: hangs, upstream: ({ url }) => url.replace('127.0.0.1', 'localhost') });
    const { finish } = answerSlowly();
    expect((await served.get()).status).to.equal(200);
    const connections = new Set<unknown>();
    served.provider.server.on('connection', (socket) => connections.add(socket));
    served.signal();
    await says('hanging');
    const many = Array.from({ length: 5 }, () => served.get('/v1/short'));
    await eventually('all have arrived', () => served.provider.received.length === 6);
    expect(connections.size).to.be.at.least(4);
    finish();
    for (const answer of await Promise.all(many)) expect(answer.status).to.equal(200);
    expect(served.process.printed.stderr).not.to.include('free');
  });

  describe('M15 the log is not read', () => {
    const MANY = 2_000; // A line or two each: far more than a pipe can hold.
    const useOften = async () => {
      for (let n = 0; n < MANY / 50; n++) {
        const answers = await Promise.all(
          Array.from({ length: 50 }, () => served.get(`/v1/models?${'x'.repeat(500)}`)),
        );
        for (const { status } of answers) expect(status).to.equal(200);
      }
    };

    it('M15 because its reader is blocked: the daemon continues and does not wait', async () => {
      await start({ env: { LOG_LEVEL: 'debug' } });
      served.process.child.stdout?.pause();
      await useOften();
      expect(await statusOf('/live')).to.equal(200);
      expect(await statusOf('/health')).to.equal(200);
    });

    it('M15 because its reader has ended: the daemon continues', async () => {
      await start({ env: { LOG_LEVEL: 'debug' } });
      served.process.child.stdout?.destroy();
      await useOften();
      expect(await statusOf('/health')).to.equal(200);
      served.process.child.kill('SIGTERM');
      expect(await served.process.exit).to.equal(0);
    });
  });

  it('M16 a stale lock file does not prevent a start', async () => {
    await start();
    const { dir } = served;
    await served.stop();
    expect(statSync(join(dir, 'llmp.db.lock')).isFile()).to.equal(true);
    await start({ dir });
    expect(await statusOf('/ready')).to.equal(200);
  });

  describe('M18 IPv6 addresses', () => {
    const limited = { GLOBAL_RATE_LIMIT: '0', IP_RATE_LIMIT: '3' };
    const at = (host: string, fields = {}) =>
      new Promise<number>((resolve, reject) => {
        const { port } = new URL(served.url);
        const socket = connect({ host, port: Number(port) });
        socket.on('error', reject);
        socket.on('data', (piece) => {
          resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(piece.toString())?.[1]));
          socket.destroy();
        });
        socket.write(head('GET /v1/models', served.secret, fields));
      });

    it('M18 the daemon listens on IPv6 only', async () => {
      await start({ env: { LISTEN_ADDR: '[::1]:0', ...limited } });
      expect(served.url).to.match(/^http:\/\/\[::1\]:\d+$/);
      expect(await at('::1')).to.equal(200);
      const refused = await at('127.0.0.1').catch((error: unknown) => error);
      expect(refused).to.have.property('code', 'ECONNREFUSED');
    });

    it('M18 the daemon listens on both, and an IPv4 address is the same client in all of its notations', async () => {
      await start({ env: { LISTEN_ADDR: '[::]:0', TRUSTED_PROXIES: '::1', ...limited } });
      expect(await at('127.0.0.1')).to.equal(200);
      expect(await at('::1', { 'X-Forwarded-For': '127.0.0.1' })).to.equal(200);
      expect(await at('::1', { 'X-Forwarded-For': '::ffff:127.0.0.1' })).to.equal(200);
      expect(await at('127.0.0.1')).to.equal(429);
      expect(await at('::1', { 'X-Forwarded-For': '192.0.2.1' })).to.equal(200);
    });
  });
});

describe('M: time', () => {
  for (const [what, byMs] of [
    ['forward', 3_600 * SECOND_MS],
    ['back', -3_600 * SECOND_MS],
  ] as const) {
    it(`M17 a clock that is set ${what} during a shutdown does not change when it ends`, async () => {
      const scene = await ProxyFixture.open({ SHUTDOWN_DELAY: '5s', SHUTDOWN_GRACE: '30s' });
      const { client } = await scene.midStream();
      scene.provider.answer = undefined;
      const { daemon, clock } = scene.daemon;
      const stopped = daemon.stop();
      clock.setWall(byMs);
      expect((await scene.get()).status).to.equal(200);
      expect(daemon.server.listening).to.equal(true);
      clock.advance(5 * SECOND_MS);
      await eventually('it has stopped listening', () => !daemon.server.listening);
      clock.setWall(byMs);
      clock.advance(29 * SECOND_MS);
      expect(client.isClosed).to.equal(false);
      clock.advance(SECOND_MS);
      await client.closed;
      await stopped;
      await scene.provider.stop();
    });
  }
});

describe('M: the probes', function () {
  this.timeout(30_000);
  let scene: ProxyFixture;
  afterEach(() => scene.close());

  const away = (silently: boolean) => () => {
    const outage = makeDatabaseUnreachable(
      scene.daemon,
      silently ? () => new Promise<never>(() => undefined) : undefined,
    );
    return () => {
      outage.end();
    };
  };
  interface Condition {
    what: string;
    /** The codes of /live, /ready and /health. */
    expected: [number, number, number];
    upstream?: string;
    env?: Record<string, string>;
    begin?: () => () => unknown;
    /** What /ready and /health say. */
    details?: object[];
  }
  const CONDITIONS: Condition[] = [
    { what: 'everything works', expected: [200, 200, 200] },
    {
      what: 'the database is unreachable',
      expected: [200, 200, 503],
      begin: away(false),
      details: [
        { status: 'ready', missing: [], degraded: ['database'] },
        { status: 'failing', checks: { database: 'failing', redis: 'off', event_bus: 'ok', memory: 'ok' } },
      ],
    },
    { what: 'the database is silent', expected: [200, 200, 503], begin: away(true) },
    {
      what: 'the database is unreachable for longer than TOKEN_STALE_LIMIT',
      expected: [200, 503, 503],
      begin: () => {
        const end = away(false)();
        scene.daemon.clock.advance(60 * SECOND_MS);
        return end;
      },
      details: [{ status: 'not ready', missing: ['database'], degraded: [] }],
    },
    { what: 'Redis is unreachable', expected: [200, 200, 200], env: { REDIS_ADDR: '127.0.0.1:9' } },
    { what: 'the upstream is unreachable', expected: [200, 200, 200], upstream: 'http://127.0.0.1:9' },
    {
      what: 'the daemon drains',
      expected: [200, 503, 200],
      env: { SHUTDOWN_DELAY: '60s' },
      begin: () => {
        const stopped = scene.daemon.daemon.stop();
        return async () => {
          scene.daemon.clock.advance(60 * SECOND_MS);
          await stopped;
        };
      },
    },
  ];
  for (const { what, expected, env = {}, upstream, begin, details = [] } of CONDITIONS) {
    it(`M14 while ${what} /live, /ready and /health are ${expected.join(', ')}, each within a second`, async () => {
      scene = await ProxyFixture.open({ TOKEN_STALE_LIMIT: '60s', ...env }, upstream);
      const end = begin?.();
      const beganAt = performance.now();
      const asked = ['/live', '/ready', '/health'].map((path) => scene.send(head(`GET ${path}`, null)));
      const answers = await Promise.all(asked);
      expect(answers.map(({ status }) => status)).to.deep.equal(expected);
      expect(performance.now() - beganAt).to.be.below(2 * SECOND_MS);
      for (const [index, fields] of details.entries()) expect(answers[index + 1]?.json).to.deep.include(fields);
      await end?.();
      if (details.length > 0) expect((await scene.send(head('GET /ready', null))).status, 'afterwards').to.equal(200);
    });
  }
});
