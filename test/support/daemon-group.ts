/** Several daemons on one database, all in this process, with one provider. */
import type { Environment } from '../../config/settings.js';
import type { DatabaseTimeouts } from '../../daemon/store/sql/database.js';
import { canaryEncryptionKey } from './canaries.js';
import type { TestClock } from './clock.js';
import { startDaemon, type TestDaemon } from './daemon.js';
import type { DatabaseServer } from './database-servers.js';
import { type Provider, startProvider } from './provider.js';

export interface DaemonGroupOptions {
  count?: number;
  env?: Environment;
  redisCommandMs?: number;
  /** For the daemon with this index. */
  envOf?: (index: number) => Environment;
  clockOf?: (index: number) => TestClock | undefined;
  /** The database timeouts of the daemon with this index, if not the default ones. */
  waitsOf?: (index: number) => Readonly<DatabaseTimeouts> | undefined;
}

export class DaemonGroup {
  readonly provider: Provider;
  readonly server: DatabaseServer;
  readonly #env: Environment;
  readonly #options: DaemonGroupOptions;
  readonly daemons: TestDaemon[] = [];

  private constructor(provider: Provider, server: DatabaseServer, env: Environment, options: DaemonGroupOptions) {
    this.provider = provider;
    this.server = server;
    this.#env = env;
    this.#options = options;
  }

  static async start(server: DatabaseServer, options: DaemonGroupOptions = {}): Promise<DaemonGroup> {
    const env = {
      DB_DRIVER: server.kind,
      DATABASE_URL: await server.newDatabase(),
      ENCRYPTION_KEY: canaryEncryptionKey(),
      ...options.env,
    };
    const several = new DaemonGroup(await startProvider(), server, env, options);
    const begun = Array.from({ length: options.count ?? 2 }, (_, index) => several.#begin(index));
    several.daemons.push(...(await Promise.all(begun)));
    return several;
  }

  get databaseUrl(): string {
    return this.#env.DATABASE_URL ?? '';
  }

  /** Adds one. */
  async add(env: Environment = {}): Promise<TestDaemon> {
    const daemon = await this.#begin(this.daemons.length, env);
    this.daemons.push(daemon);
    return daemon;
  }

  #begin(index: number, env: Environment = {}): Promise<TestDaemon> {
    const clock = this.#options.clockOf?.(index);
    const waits = this.#options.waitsOf?.(index);
    const { redisCommandMs } = this.#options;
    return startDaemon({
      redisCommandMs,
      upstream: this.provider.url,
      env: { ...this.#env, ...this.#options.envOf?.(index), ...env },
      ...(clock && { clock }),
      ...(waits && { databaseTimeouts: waits }),
    });
  }

  at(index: number): TestDaemon {
    const daemon = this.daemons[index];
    if (!daemon) throw new RangeError(`no daemon ${index}`);
    return daemon;
  }

  async stop(): Promise<void> {
    await Promise.all(this.daemons.map((daemon) => daemon.stop()));
    await this.provider.stop();
  }
}
