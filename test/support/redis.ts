/** A Redis for tests, on a free port and in its own folder, and a relay in front of it that can be slow or silent. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import type { RedisAddress } from '../../daemon/store/redis/address.js';
import { RedisConnection } from '../../daemon/store/redis/connection.js';
import type { TestClock } from './clock.js';
import { recordingLog, temporaryFolder } from './daemon.js';
import { eventually } from './eventually.js';
import { freePort } from './ports.js';
import { freezeProcess } from './freeze-process.js';
import { perTest } from './per-test.js';

/** For `redisCommandMs` in tests that are not about time: a busy machine takes longer than the default 50 ms. */
export const LENIENT_REDIS_TIMEOUT_MS = 5_000;

/** Says why tests of Redis are skipped here. Where everything must be installed, they fail instead. */
export const WITHOUT_REDIS =
  process.env.CI !== 'true' && spawnSync('redis-server', ['--version']).error ? ' (skipped: no redis-server here)' : '';

/** Skips the suite that calls it first where Redis is not installed. */
export function needsRedis(): void {
  before(function () {
    if (WITHOUT_REDIS) this.skip();
  });
}

/**
 * A Redis for each test of the suite that calls it first, and of which `WITHOUT_REDIS` is a part of the title.
 * @param stop stops what uses it, after each test and before Redis is stopped.
 */
export function redisPerTest(stop: () => unknown = () => undefined): TestRedis {
  needsRedis();
  afterEach(async () => {
    redis.resume();
    await stop();
  });
  const redis = perTest(() => TestRedis.start());
  return redis;
}

export class TestRedis {
  readonly port: number;
  readonly #dir = temporaryFolder();
  #options: readonly string[];
  #process: ChildProcess | null = null;
  #client: Redis | null = null;

  private constructor(port: number, options: readonly string[]) {
    this.port = port;
    this.#options = options;
  }

  /** @param options of the command line. They must not contain a password, because any user can read a command line. */
  static async start(...options: string[]): Promise<TestRedis> {
    const redis = new TestRedis(await freePort(), options);
    await redis.begin();
    return redis;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  get isDown(): boolean {
    return this.#process === null;
  }

  /** The options of a connection. */
  at(more: Partial<RedisAddress> = {}): RedisAddress {
    const [host, port] = ['127.0.0.1', this.port];
    return { host, port, database: 0, username: undefined, password: undefined, isEncrypted: false, ...more };
  }

  /** A client for what a test reads and changes itself, without the daemons. */
  get client(): Redis {
    return (this.#client ??= this.#newClient());
  }

  #newClient(): Redis {
    const client = new Redis({
      port: this.port,
      host: '127.0.0.1',
      protocol: 2,
      retryStrategy: () => 20,
    });
    client.on('error', () => undefined); // While Redis is down.
    return client;
  }

  /** Starts it, or restarts it with the data that it had saved. */
  async begin(...options: string[]): Promise<void> {
    this.#options = [...this.#options, ...options];
    const args = [
      '--port',
      String(this.port),
      '--bind',
      '127.0.0.1',
      '--dir',
      this.#dir,
      '--save',
      '',
      ...this.#options,
    ];
    this.#process = spawn('redis-server', args, { stdio: 'ignore' });
    await once(this.#process, 'spawn');
    await eventually('Redis responds', async () => {
      const probe = this.#newClient();
      const isThere = await probe.ping().then(Boolean, () => false);
      probe.disconnect();
      return isThere;
    });
  }

  /** Kills it. Data that it had not saved is lost. */
  async kill(): Promise<void> {
    const it = this.#process;
    if (!it) return;
    this.#process = null;
    const gone = once(it, 'exit');
    it.kill('SIGKILL');
    await gone;
  }

  /** As if the machine were frozen: connections stay, nothing responds. */
  freeze(): void {
    if (this.#process?.pid !== undefined) freezeProcess(this.#process.pid);
  }

  resume(): void {
    this.#process?.kill('SIGCONT');
  }

  /** The number of commands it has run, including these. */
  async commands(): Promise<number> {
    return Number(/total_commands_processed:(\d+)/.exec(await this.client.info('stats'))?.[1]);
  }

  async stop(): Promise<void> {
    this.#client?.disconnect();
    this.#client = null;
    await this.kill();
  }
}

/** A connection for tests that are not about time: on a busy machine, a command may take long. */
export const connectionTo = (redis: TestRedis, clock: TestClock): RedisConnection =>
  new RedisConnection({ address: redis.at(), clock, log: recordingLog().log, commandMs: 5_000 });

/** A relay in front of a server that can delay or drop what passes. */
export class Relay {
  readonly #targetPort: number;
  /** The delay of each piece, in either direction. */
  delayMs = 0;
  /** Accepts connections, and forwards nothing. */
  isSilent = false;
  /** From such a piece of the client on, the responses on its connection are dropped. */
  dropsRepliesTo: ((piece: Buffer, connection: Socket) => boolean) | null = null;
  /** How often responses were dropped. */
  dropped = 0;
  connections = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#server = createServer((client) => {
      this.#connect(client);
    });
  }

  static async to(targetPort: number): Promise<Relay> {
    const relay = new Relay(targetPort);
    relay.#server.listen(0, '127.0.0.1');
    await once(relay.#server, 'listening');
    return relay;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** The number of open connections from clients. */
  get open(): number {
    return this.#sockets.size;
  }

  /** Resets all connections. */
  reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    if (this.#server.listening) await once(this.#server, 'close');
  }

  #connect(client: Socket): void {
    this.connections++;
    const target = connect(this.#targetPort, '127.0.0.1');
    this.#sockets.add(client);
    let leadsNowhere = false;
    for (const [from, to] of [
      [client, target],
      [target, client],
    ] as const) {
      from.on('error', () => undefined);
      from.on('data', (piece) => {
        if (this.isSilent || (leadsNowhere && from === target)) return;
        if (from === client && this.dropsRepliesTo?.(piece, client)) {
          leadsNowhere = true;
          this.dropped += 1;
        }
        if (this.delayMs === 0) to.write(piece);
        else setTimeout(() => to.write(piece), this.delayMs);
      });
      from.on('close', () => {
        this.#sockets.delete(client);
        to.destroy();
      });
    }
  }
}
