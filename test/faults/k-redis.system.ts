import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { canary } from '../support/canaries.js';
import { Authority, type Certificate, selfSigned } from '../support/certificates.js';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { type ListeningDaemon, spawnDaemon } from '../support/process.js';
import { ask, head } from '../support/raw.js';
import { perTest } from '../support/per-test.js';
import { freePort } from '../support/ports.js';
import { needsRedis, redisPerTest, Relay, WITHOUT_REDIS } from '../support/redis.js';
import { ProxyFixture } from '../support/proxy-fixture.js';

/** Every request needs Redis; none is refused. */
const ASKING = { IP_RATE_LIMIT: '1000000', GLOBAL_RATE_LIMIT: '1000000', HTTP_CACHE_ENABLED: 'true' };

describe(`K: Redis and a whole daemon${WITHOUT_REDIS}`, function () {
  this.timeout(30_000);
  let scene: ProxyFixture;
  const redis = redisPerTest(() => scene.close());
  const relay = perTest(() => Relay.to(redis.port));

  const open = async (env: Record<string, string> = {}) => {
    scene = await ProxyFixture.open({ REDIS_ADDR: relay.address, ...ASKING, ...env });
  };
  const probe = async (path: string) => (await ask(scene.daemon.url, head(`GET ${path}`, null))).json as unknown;
  const redisIs = async (state: string) =>
    ((await probe('/health')) as { checks: { redis: string } }).checks.redis === state;
  const comesBack = () =>
    eventually('Redis is back', async () => {
      scene.daemon.clock.advance(100);
      return redisIs('ok');
    });
  const get = async (path = '/v1/models') => {
    const beganAt = performance.now();
    const { status } = await scene.send(head(`GET ${path}`, scene.secret));
    expect(status).to.equal(200);
    return performance.now() - beganAt;
  };

  async function expectServed(): Promise<void> {
    for (let i = 0; i < 10; i++) await get(`/v1/models?limit=${i}`);
  }

  async function expectDegraded(): Promise<void> {
    expect(await probe('/live')).to.deep.include({ status: 'ok' });
    expect(await probe('/ready')).to.deep.equal({ status: 'ready', missing: [], degraded: ['redis'] });
    expect(await probe('/health')).to.deep.include({ status: 'ok' });
    expect(await redisIs('failing')).to.equal(true);
  }

  it('K01 without Redis a daemon starts, serves, reports that it is degraded, and connects when Redis starts', async () => {
    await redis.kill();
    const beganAt = performance.now();
    await open();
    expect(performance.now() - beganAt).to.be.below(5_000);
    await expectServed();
    await expectDegraded();
    await redis.begin();
    await comesBack();
    expect(await probe('/ready')).to.deep.equal({ status: 'ready', missing: [], degraded: [] });
  });

  it('K01 K03 a daemon starts and serves although Redis does not reply', async () => {
    relay.isSilent = true;
    await open();
    await expectServed();
    await expectDegraded();
  });

  for (const [what, fail, mend] of [
    ['K02 Redis is killed', () => redis.kill(), () => redis.begin()],
    [
      'K03 freezes',
      () => {
        redis.freeze();
      },
      () => {
        redis.resume();
      },
    ],
    [
      'K03 Redis accepts connections and never replies',
      () => {
        relay.isSilent = true;
      },
      () => {
        relay.isSilent = false;
      },
    ],
    [
      'K04 Redis takes 200 ms for each reply',
      () => {
        relay.delayMs = 200;
      },
      () => {
        relay.delayMs = 0;
      },
    ],
    [
      'K05 Redis becomes a replica and refuses to write',
      () => redis.client.replicaof('127.0.0.1', 1),
      () => redis.client.replicaof('NO', 'ONE'),
    ],
    [
      'K15 Redis no longer accepts our credentials',
      async () => {
        await redis.client.config('SET', 'requirepass', canary('password'));
        relay.reset();
      },
      () => redis.client.config('SET', 'requirepass', ''),
    ],
  ] as const) {
    it(`${what} while requests are served: none fails, and soon none waits`, async () => {
      await open();
      await comesBack(); // On a busy machine, a first try may have been too slow.
      await get();
      await fail();
      await eventually('the circuit breaker opens', async () => {
        await get();
        return redisIs('failing');
      });
      await expectDegraded();
      const waits: number[] = [];
      for (let i = 0; i < 50; i++) waits.push(await get(`/v1/models?limit=${i}`));
      // A lookup that they waited for would cost each of them 50 ms.
      expect(waits.sort((a, b) => a - b)[25]).to.be.below(40);
      await mend();
      await comesBack();
      await expectServed();
    });
  }

  it('K04 a request does not wait for Redis longer than the timeout of a command', async () => {
    await open();
    await comesBack();
    relay.delayMs = 10_000;
    expect(await get()).to.be.below(1_000);
  });

  it('K05 after an outage the cache serves no older response, even if an older snapshot has one', async () => {
    await open();
    await comesBack();
    const cache = async () => (await scene.get()).header('x-proxy-cache');
    await eventually('it is stored', async () => (await cache()) === 'hit');
    await redis.client.save();
    await redis.kill();
    await eventually('the circuit breaker opens', () => redisIs('failing'));
    expect(await cache()).to.equal('miss');
    await redis.begin();
    expect(await redis.client.keys('llmp:cache:entry:*')).to.have.length(1);
    await comesBack();
    expect(await cache()).to.equal('miss');
    await eventually('it is stored again', async () => (await cache()) === 'hit');
  });

  it('K09 with full memory, requests are served', async () => {
    await open();
    await redis.client.config('SET', 'maxmemory', '1');
    await expectServed();
    await redis.client.config('SET', 'maxmemory', '0');
    await expectServed();
  });

  it('K15 I18 refused credentials: a clear log line without them, and nothing in a response', async () => {
    const password = canary('password');
    await redis.client.config('SET', 'requirepass', canary('password'));
    await open({ REDIS_PASSWORD: password });
    const line = scene.daemon.logged.find((it) => it.includes('Redis unavailable'));
    expect(line).to.include('WRONGPASS').and.not.include(password);
    const answer = await scene.get();
    expect(answer.status).to.equal(200);
    expect(JSON.stringify([answer.fields, answer.text, await probe('/health')])).not.to.match(/WRONGPASS|password/);
  });

  it('K20 commands and events use separate connections, and none is left when the daemon has stopped', async () => {
    await open();
    await comesBack();
    await eventually('both are connected', () => relay.open === 2);
    await scene.daemon.stop();
    await eventually('it is closed', () => relay.open === 0);
    await scene.provider.stop();
    await open();
  });
});

describe(`K15 Redis over TLS${WITHOUT_REDIS}`, function () {
  this.timeout(30_000);
  let server: ChildProcess | undefined;
  let daemon: ListeningDaemon | undefined;

  needsRedis();
  afterEach(async () => {
    await daemon?.kill();
    server?.kill('SIGKILL');
    if (server?.exitCode === null && server.signalCode === null) await once(server, 'exit');
  });

  /** @returns what /health of a daemon that trusts `trusted` reports for a Redis with this certificate. */
  async function judged({ cert, key }: Certificate, trusted: string): Promise<unknown> {
    const [dir, port] = [temporaryFolder(), await freePort()];
    const file = (name: string, text: string) => {
      writeFileSync(join(dir, name), text);
      return join(dir, name);
    };
    const tls = ['--tls-cert-file', file('cert.pem', cert), '--tls-key-file', file('key.pem', key)];
    const where = ['--port', '0', '--tls-port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', ''];
    server = spawn('redis-server', [...where, ...tls, '--tls-auth-clients', 'no'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let said = '';
    server.stdout?.on('data', (text: Buffer) => (said += text.toString()));
    await eventually('Redis is ready', () => said.includes('Ready to accept connections'));
    daemon = await spawnDaemon({
      MANAGEMENT_TOKEN,
      DATABASE_URL: `${dir}/llmp.db`,
      REDIS_ADDR: `localhost:${port}`,
      REDIS_TLS: 'true',
      NODE_EXTRA_CA_CERTS: file('ca.pem', trusted),
    });
    const { url } = daemon;
    const health = async () =>
      ((await ask(url, head('GET /health', null))).json as { checks: { redis: string } }).checks.redis;
    await eventually('it is known', async () => {
      return (await health()) === 'ok' || daemon?.logged.some((line) => line.includes('Redis unavailable'));
    });
    return health();
  }

  it('K15 a valid certificate: connected', async () => {
    const authority = new Authority();
    expect(await judged(authority.issue({ name: 'localhost' }), authority.certificate)).to.equal('ok');
  });

  it('K15 a certificate from an untrusted issuer: not connected', async () => {
    const authority = new Authority();
    expect(await judged(selfSigned({ name: 'localhost' }), authority.certificate)).to.equal('failing');
  });

  it('K15 a certificate for another host: not connected', async () => {
    const authority = new Authority();
    expect(await judged(authority.issue({ name: 'another.example' }), authority.certificate)).to.equal('failing');
  });
});
