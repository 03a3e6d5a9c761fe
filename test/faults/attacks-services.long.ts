/** Attacks on the listeners of `llmp admin` and `llmp dispatcher`, with a heap of 256 MB. README.md has the figures. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { MAIN } from '../cli/processes.js';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { TestRedis } from '../support/redis.js';
import {
  attack,
  expectWithinLimits,
  type Hostility,
  SMALL_HEAP,
  startAttacked,
  type Target,
} from './support/attack.js';
import type { ServedDaemon } from './support/served-daemon.js';

const CONNECTIONS = 1_000;
const HELD_MS = 6_000;

const ATTACKS: Record<string, (path: string) => Omit<Hostility, 'connections'>> = {
  'pipelined requests, responses unread': (path) => ({
    pieces: [`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`],
    times: 6_000,
  }),
  'unfinished heads of 43 KB': (path) => ({
    pieces: [`GET ${path} HTTP/1.1\r\nHost: a\r\n${'X-Filler: 0123456789abcdef\r\n'.repeat(1_500)}`],
  }),
};

describe('Attacks on services beside the daemon, with a heap of 256 MB', function () {
  this.timeout(180_000);
  let child: ChildProcess | null = null;
  afterEach(async () => {
    if (child?.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'close');
    }
    child = null;
  });

  /** Starts a service and waits until it listens. @param path the path that its polite clients request. */
  async function start(args: readonly string[], env: Record<string, string>, path: string): Promise<Target> {
    const service = spawn(process.execPath, [SMALL_HEAP, '--', MAIN, ...args], {
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child = service;
    for await (const line of createInterface({ input: service.stdout })) {
      const { message, address } = JSON.parse(line) as { message: string; address: string };
      if (message !== 'listening' && message !== 'dispatching') continue;
      service.stdout.resume();
      const url = `http://${address}`;
      return {
        pid: service.pid ?? 0,
        url,
        polite: `${url}${path}`,
        secret: null,
        ready: `${url}/ready`,
        isAlive: () => service.exitCode === null && service.signalCode === null,
      };
    }
    throw new Error('it does not listen');
  }

  describe('llmp admin', () => {
    let daemon: ServedDaemon;
    before(async () => {
      daemon = await startAttacked();
    });
    after(() => daemon.stop());

    for (const [what, hostility] of Object.entries(ATTACKS)) {
      it(`${CONNECTIONS} connections to llmp admin: ${what}`, async function () {
        const args = ['admin', '--server', daemon.url, '--listen', '127.0.0.1:0'];
        const target = await start(args, { MANAGEMENT_TOKEN }, '/admin/login');
        const all = { connections: CONNECTIONS, ...hostility('/admin/login') };
        expectWithinLimits(this.test?.title ?? '', await attack(target, all, HELD_MS));
      });
    }
  });

  describe('llmp dispatcher', () => {
    let redis: TestRedis;
    before(async () => {
      redis = await TestRedis.start();
    });
    after(() => redis.stop());

    for (const [what, hostility] of Object.entries(ATTACKS)) {
      it(`${CONNECTIONS} connections to llmp dispatcher: ${what}`, async function () {
        const env = {
          REDIS_ADDR: redis.address,
          DISPATCHER_SERVICE: 'file',
          DISPATCHER_ENDPOINT: `${temporaryFolder()}/events.jsonl`,
          DISPATCHER_LISTEN_ADDR: '127.0.0.1:0',
        };
        const target = await start(['dispatcher'], env, '/metrics');
        const all = { connections: CONNECTIONS, ...hostility('/metrics') };
        expectWithinLimits(this.test?.title ?? '', await attack(target, all, HELD_MS));
      });
    }
  });
});
