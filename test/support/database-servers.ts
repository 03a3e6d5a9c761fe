/** Database servers for tests, on free ports and in their own folders. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Sequelize } from 'sequelize';
import { eventually } from './eventually.js';
import type { Certificate } from './certificates.js';
import {
  asUser,
  isInstalled,
  MYSQL_FILES,
  newServerFolder,
  postgresTool,
  type ServerKind,
  userOf,
} from './database-folders.js';
import { freePort } from './ports.js';
import { freezeProcess } from './freeze-process.js';
import { childrenOf } from './process-tree.js';

export type { ServerKind } from './database-folders.js';

const isAll = process.env.CI === 'true';
const isRoot = process.getuid?.() === 0;

/** Says why tests of a server are skipped here. Where everything must be installed, they fail instead. */
export const WITHOUT: Record<ServerKind, string> = {
  postgres: isAll || isInstalled('postgres') ? '' : ' (skipped: no PostgreSQL here)',
  mysql: isAll || isInstalled('mysql') ? '' : ' (skipped: no MariaDB here)',
};

// These servers may lose their data: they do not wait for the disk, and all sizes are minimal.
const POSTGRES_SETTINGS = [
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'wal_level=minimal',
  'max_wal_senders=0',
  'shared_buffers=32MB',
  'max_connections=200',
];
const MYSQL_SETTINGS = [
  ...MYSQL_FILES,
  '--innodb-flush-log-at-trx-commit=0',
  '--innodb-flush-method=nosync',
  '--innodb-doublewrite=0',
  '--innodb-buffer-pool-size=32M',
  '--innodb-buffer-pool-dump-at-shutdown=0',
  '--innodb-buffer-pool-load-at-startup=0',
  '--innodb-temp-data-file-path=ibtmp1:1M:autoextend',
  '--innodb-fast-shutdown=2',
  '--key-buffer-size=1M',
  '--aria-pagecache-buffer-size=1M',
  '--skip-log-bin',
  '--skip-name-resolve',
  '--max-connections=200',
];

const shared: Partial<Record<ServerKind, Promise<DatabaseServer>>> = {};

/** A server that can be started and stopped, until it is removed. */
export class DatabaseServer {
  readonly kind: ServerKind;
  readonly port: number;
  /** Used from its next start. */
  certificate: Certificate | null;
  // Tens of megabytes that need no scan for secrets.
  readonly #dir: string;
  #process: ChildProcess | null = null;
  #databases = 0;
  #isShared = false;

  private constructor(kind: ServerKind, port: number, certificate: Certificate | null) {
    this.kind = kind;
    this.port = port;
    this.certificate = certificate;
    this.#dir = newServerFolder(kind);
  }

  /** A server for a test that stops it, freezes it or changes its settings. @param certificate if given, it offers TLS. */
  static async start(kind: ServerKind, certificate: Certificate | null = null): Promise<DatabaseServer> {
    const server = new DatabaseServer(kind, await freePort(), certificate);
    await server.begin();
    return server;
  }

  /** A server that all tests of this process share, for tests that only need a separate database. It ends with the process. */
  static shared(kind: ServerKind): Promise<DatabaseServer> {
    return (shared[kind] ??= this.start(kind).then((server) => {
      server.#isShared = true;
      process.once('exit', () => {
        server.#end();
      });
      return server;
    }));
  }

  get #data(): string {
    return join(this.#dir, 'data');
  }

  /** The URL of its unix socket, as in DATABASE_URL. */
  socketUrl(database: string): string {
    return this.kind === 'postgres'
      ? `postgres://llmp@:${this.port}/${database}?host=${this.#dir}`
      : `mysql://root@/${database}?socket=${join(this.#dir, 'socket')}`;
  }

  #tlsOptions(): string[] {
    if (!this.certificate) return [];
    const [cert, key] = [join(this.#dir, 'cert.pem'), join(this.#dir, 'key.pem')];
    writeFileSync(cert, this.certificate.cert, { mode: 0o600 });
    writeFileSync(key, this.certificate.key, { mode: 0o600 });
    if (isRoot) spawnSync('chown', [userOf(this.kind), cert, key]);
    return this.kind === 'postgres'
      ? ['-c', 'ssl=on', '-c', `ssl_cert_file=${cert}`, '-c', `ssl_key_file=${key}`]
      : [`--ssl-cert=${cert}`, `--ssl-key=${key}`];
  }

  /** Starts it, or restarts it with its data. */
  async begin(): Promise<void> {
    const port = String(this.port);
    const command: string[] =
      this.kind === 'postgres'
        ? [
            postgresTool('postgres'),
            ...['-D', this.#data, '-p', port, '-h', '127.0.0.1', '-k', this.#dir],
            ...POSTGRES_SETTINGS.flatMap((setting) => ['-c', setting]),
          ]
        : [
            'mariadbd',
            '--no-defaults',
            `--datadir=${this.#data}`,
            `--port=${port}`,
            '--bind-address=127.0.0.1',
            `--socket=${join(this.#dir, 'socket')}`,
            ...MYSQL_SETTINGS,
          ];
    this.#process = spawn('setpriv', asUser(this.kind, [...command, ...this.#tlsOptions()]), { stdio: 'ignore' });
    await once(this.#process, 'spawn');
    await eventually(`${this.kind} listens`, () => this.#listens(), 30_000);
    // PostgreSQL accepts connections before it serves them.
    const admin = this.#asAdministrator();
    const serves = () =>
      admin.query('SELECT 1').then(
        () => true,
        () => false,
      );
    await eventually(`${this.kind} serves`, serves, 30_000).finally(() => admin.close());
  }

  #listens(): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = connect(this.port, '127.0.0.1');
      socket.once('error', () => {
        resolve(false);
      });
      // A server that is starting, or another program, would close the connection without a message.
      socket.once('connect', () => {
        socket.destroy();
        resolve(true);
      });
    });
  }

  #asAdministrator(): Sequelize {
    return new Sequelize(this.#urlOf(this.kind === 'postgres' ? 'postgres' : 'mysql'), { logging: false });
  }

  /** @returns the URL of a new, empty database. */
  async newDatabase(): Promise<string> {
    this.#databases += 1;
    const name = `llmp_${this.#databases}`;
    const admin = this.#asAdministrator();
    await admin.query(`CREATE DATABASE ${name}`);
    await admin.close();
    return this.#urlOf(name);
  }

  #urlOf(database: string): string {
    return this.kind === 'postgres'
      ? `postgres://llmp@127.0.0.1:${this.port}/${database}`
      : `mysql://root@127.0.0.1:${this.port}/${database}`;
  }

  /** As if the machine were frozen: connections stay, nothing responds. */
  freeze(): void {
    if (this.#isShared) throw new Error('other tests use this server as well');
    this.#each(freezeProcess);
  }

  resume(): void {
    this.#each((pid) => process.kill(pid, 'SIGCONT'));
  }

  /** PostgreSQL has a process for each connection. */
  #each(act: (pid: number) => boolean): void {
    const pid = this.#process?.pid;
    if (pid === undefined) return;
    const actIfAlive = (id: number) => {
      try {
        act(id);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // It has ended meanwhile.
      }
    };
    actIfAlive(pid); // The parent first, so that it gets no more children.
    for (const child of childrenOf(pid)) actIfAlive(child);
  }

  async stop(): Promise<void> {
    // For PostgreSQL: without waiting for clients to disconnect.
    await this.#stop(this.kind === 'postgres' ? 'SIGINT' : 'SIGTERM');
  }

  async #stop(signal: NodeJS.Signals): Promise<void> {
    if (this.#isShared) throw new Error('other tests use this server as well');
    const server = this.#process;
    if (!server) return;
    this.resume();
    this.#process = null;
    server.kill(signal);
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
  }

  /** Stops it and removes its data. */
  async remove(): Promise<void> {
    await this.#stop(AT_ONCE[this.kind]);
    rmSync(this.#dir, { recursive: true, force: true });
  }

  /** The same while this process exits, which waits for nothing. */
  #end(): void {
    const pid = this.#process?.pid;
    this.#process?.kill(AT_ONCE[this.kind]);
    // A PostgreSQL server removes its shared memory before it ends.
    if (pid !== undefined) untilGone(pid);
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

/** The signal that ends a server whose data is no longer needed. */
const AT_ONCE: Record<ServerKind, NodeJS.Signals> = { postgres: 'SIGQUIT', mysql: 'SIGKILL' };

function untilGone(pid: number): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let tries = 0; tries < 500 && isRunning(pid); tries++) Atomics.wait(pause, 0, 0, 2);
}

function isRunning(pid: number): boolean {
  try {
    // The fields after the name. A process that has ended stays until its parent has waited for it.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.[0] !== 'Z';
  } catch {
    return false;
  }
}
