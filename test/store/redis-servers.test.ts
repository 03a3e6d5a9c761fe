/** Redis servers of other kinds than a single server on which llmp may do everything. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { expect } from 'chai';
import { SettingsError } from '../../config/settings.js';
import { llmp } from '../cli/captured.js';
import { canary } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/ports.js';
import { ProxyFixture } from '../support/proxy-fixture.js';
import { LENIENT_REDIS_TIMEOUT_MS, TestRedis, needsRedis, WITHOUT_REDIS } from '../support/redis.js';

const CACHED = { HTTP_CACHE_ENABLED: 'true', HTTP_CACHE_BACKEND: 'redis' };

/** What `llmp doctor` finds out about Redis: its findings of a check. */
async function diagnosis(env: Record<string, string>): Promise<(check: string) => string> {
  const { out } = await llmp('doctor --json', {
    env: { MANAGEMENT_TOKEN, AUDIT_LOG_FILE: '', UPSTREAM_BASE_URL: 'http://127.0.0.1:9', ...env },
  });
  const { checks } = JSON.parse(out) as {
    checks: { check: string; state: string; evidence: string; advice: string }[];
  };
  return (name) => {
    const found = checks.filter(({ check }) => check === name);
    return found.map(({ state, evidence, advice }) => `${state}: ${evidence} > ${advice}`).join('\n');
  };
}

/** @returns why a daemon does not start. */
const refusal = (env: Record<string, string>): Promise<Error> =>
  startDaemon({ env: { ...CACHED, ...env }, redisCommandMs: LENIENT_REDIS_TIMEOUT_MS }).then(
    async (daemon) => {
      await daemon.stop();
      return new Error('the daemon started');
    },
    (error: unknown) => error as Error,
  );

describe('a server that speaks as Redis', () => {
  let server: Server;
  let replies: Record<string, string>;

  beforeEach(async () => {
    replies = { PING: '+PONG', INFO: '-NOPERM this user has no permissions', TIME: '*2\r\n$1\r\n1\r\n$1\r\n1' };
    server = createServer((socket) => {
      socket.setEncoding('utf8').on('error', () => undefined);
      socket.on('data', (text: string) => {
        for (const command of text.split(/^(?=\*\d+\r\n)/m)) {
          const [name = ''] = /(?<=^\$\d+\r\n)\w+/m.exec(command) ?? [];
          socket.write(`${replies[name.toUpperCase()] ?? '-ERR unknown command'}\r\n`);
        }
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(() => {
    server.close();
  });
  const address = () => `127.0.0.1:${(server.address() as AddressInfo).port}`;

  it('in cluster mode, and does not say so: the first commands show it', async () => {
    const reply = '-ERR Script attempted to access a non local key in a cluster node script: 5c1f, on @user_script:1.';
    replies = { ...replies, EVAL: reply, EVALSHA: reply };
    const env = { REDIS_ADDR: address() };
    expect((await diagnosis(env))('redis')).to.match(/^failed: .*is in cluster mode/);
    const scene = await ProxyFixture.open({ ...CACHED, ...env }, undefined, LENIENT_REDIS_TIMEOUT_MS);
    try {
      await eventually('it is logged', async () => {
        await scene.get();
        return scene.daemon.logged.some(
          (line) => /is in cluster mode/.test(line) && line.includes('Redis unavailable'),
        );
      });
      expect((await scene.get()).status).to.equal(200);
    } finally {
      await scene.close();
    }
  });

  it('is a Sentinel: the start is refused, and llmp doctor fails, with what to do', async () => {
    const fields = ['server', 'redis', 'version', '7.0.15', 'mode', 'sentinel'];
    replies.HELLO = `*${fields.length}${fields.map((field) => `\r\n$${field.length}\r\n${field}`).join('')}`;
    const env = { REDIS_ADDR: address() };
    const error = await refusal(env);
    expect(error).to.be.instanceOf(SettingsError);
    expect(error.message).to.match(/^REDIS_ADDR: the server is a Sentinel, .*Use the address of the primary$/);
    expect((await diagnosis(env))('redis')).to.match(/^failed: .*Redis 7\.0\.15: .*is a Sentinel.* > Set REDIS_ADDR: /);
  });
});

describe(`a Redis of another kind${WITHOUT_REDIS}`, function () {
  this.timeout(60_000);
  const started: TestRedis[] = [];

  needsRedis();
  afterEach(async () => {
    for (const redis of started.splice(0)) await redis.stop();
  });

  /** By default the port between the servers of a cluster is 10,000 above the other, which may be too high. */
  const startCluster = async () => start('--cluster-enabled', 'yes', '--cluster-port', String(await freePort()));

  async function start(...options: string[]): Promise<TestRedis> {
    const redis = await TestRedis.start(...options);
    started.push(redis);
    return redis;
  }

  it('in cluster mode: the start is refused, and llmp doctor fails, with what to do', async () => {
    const redis = await startCluster();
    const env = { REDIS_ADDR: redis.address };
    const error = await refusal(env);
    expect(error).to.be.instanceOf(SettingsError);
    expect(error.message).to.match(/^REDIS_ADDR: the server is in cluster mode, .*Use a Redis without cluster mode$/);
    expect((await diagnosis(env))('redis')).to.match(
      /^failed: .*is in cluster mode.* > Set REDIS_ADDR: Use a Redis without/,
    );
  });

  it('in cluster mode, with a user who may not run INFO: the same', async () => {
    const redis = await startCluster();
    const password = canary('password');
    await redis.client.acl('SETUSER', 'llmp', 'on', `>${password}`, '~llmp:*', '&llmp:*', '+@all', '-@dangerous');
    const env = { REDIS_ADDR: redis.address, REDIS_USERNAME: 'llmp', REDIS_PASSWORD: password };
    expect((await refusal(env)).message).to.match(/in cluster mode/);
    expect((await diagnosis(env))('redis')).to.match(/^failed: .*is in cluster mode/);
  });

  it('a user who may not run INFO: the cache works, and llmp doctor says so', async () => {
    const redis = await start();
    const password = canary('password');
    await redis.client.acl('SETUSER', 'llmp', 'on', `>${password}`, '~llmp:*', '&llmp:*', '+@all', '-@dangerous');
    const env = { REDIS_ADDR: redis.address, REDIS_USERNAME: 'llmp', REDIS_PASSWORD: password };
    const of = await diagnosis(env);
    expect(of('redis')).to.match(/^ok: 127\.0\.0\.1:\d+: Redis \d/);
    expect(of('redis memory')).to.match(/^skipped: .*may not run INFO/);
    const scene = await ProxyFixture.open({ ...CACHED, ...env }, undefined, LENIENT_REDIS_TIMEOUT_MS);
    try {
      scene.provider.answer = (_req, res) => {
        res.writeHead(200, { 'Cache-Control': 'max-age=600' }).end('{}');
      };
      await scene.get();
      await eventually('it is stored', async () => (await scene.get()).header('x-proxy-cache') === 'hit');
    } finally {
      await scene.close();
    }
  });

  it('a user who may not run scripts: llmp doctor fails with what to do', async () => {
    const redis = await start();
    const password = canary('password');
    await redis.client.acl('SETUSER', 'llmp', 'on', `>${password}`, '~llmp:*', '+@all', '-@scripting');
    const of = await diagnosis({ REDIS_ADDR: redis.address, REDIS_USERNAME: 'llmp', REDIS_PASSWORD: password });
    expect(of('redis')).to.match(/^failed: .*eval.* > Give the user of REDIS_USERNAME all commands/i);
  });
});
