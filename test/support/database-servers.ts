/** Database servers of the tests' own, on free ports and in folders of their own. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Sequelize } from 'sequelize';
import { eventually } from './eventually.js';
import type { Certificate } from './certificates.js';
import { freePort } from './ports.js';
import { standStill } from './standstill.js';

export type ServerKind = 'postgres' | 'mysql';

const isAll = process.env.CI === 'true';
const isRoot = process.getuid?.() === 0;

// Debian keeps what begins a server of PostgreSQL beside its versions, in nobody's path.
const POSTGRES_BIN = postgresBin();

/** Says why tests of a server are skipped here; where everything must be there they fail instead. */
export const WITHOUT: Record<ServerKind, string> = {
  postgres: isAll || POSTGRES_BIN !== null ? '' : ' (skipped: no PostgreSQL here)',
  mysql: isAll || !spawnSync('mariadbd', ['--version']).error ? '' : ' (skipped: no MariaDB here)',
};

function postgresBin(): string | null {
  const root = '/usr/lib/postgresql';
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : [];
  const bin = versions.map((version) => join(root, version, 'bin')).find((path) => existsSync(join(path, 'initdb')));
  return bin ?? (spawnSync('initdb', ['--version']).error ? null : '');
}

/** A server that listens, until it is stopped; gone for good when it is removed. */
export class DatabaseServer {
  // A hundred megabytes that nobody need look through for secrets.
  readonly #dir = mkdtempSync(join(tmpdir(), 'llmp-test-server-'));
  #process: ChildProcess | null = null;
  #databases = 0;

  private constructor(
    readonly kind: ServerKind,
    readonly port: number,
    /** From when it begins. */
    public certificate: Certificate | null,
  ) {}

  /** @param certificate with one it speaks TLS to whoever wants it. */
  static async start(kind: ServerKind, certificate: Certificate | null = null): Promise<DatabaseServer> {
    const server = new DatabaseServer(kind, await freePort(), certificate);
    server.#prepare();
    await server.begin();
    return server;
  }

  /** Neither of them runs as root. */
  get #user(): string {
    return this.kind === 'postgres' ? 'postgres' : 'mysql';
  }

  get #data(): string {
    return join(this.#dir, 'data');
  }

  #prepare(): void {
    if (isRoot) spawnSync('chown', [this.#user, this.#dir]);
    const [command, ...args]: [string, ...string[]] =
      this.kind === 'postgres'
        ? [tool('initdb'), '-D', this.#data, '-U', 'llmp', '-A', 'trust', '-E', 'UTF8', '--no-sync']
        : [
            'mariadb-install-db',
            '--no-defaults',
            `--datadir=${this.#data}`,
            '--auth-root-authentication-method=normal',
            '--skip-test-db',
          ];
    const { status, stderr, error } = spawnSync(...this.#asUser(command, args), { encoding: 'utf8' });
    if (status !== 0) throw error ?? new Error(`no ${this.kind}: ${stderr}`);
  }

  /** Should these tests be killed, it ends with them. */
  #asUser(command: string, args: readonly string[]): [string, string[]] {
    const user = isRoot ? ['--reuid', this.#user, '--regid', this.#user, '--clear-groups'] : [];
    return ['setpriv', ['--pdeathsig', 'KILL', ...user, command, ...args]];
  }

  /** Of its unix socket, as DATABASE_URL has it. */
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
    if (isRoot) spawnSync('chown', [this.#user, cert, key]);
    return this.kind === 'postgres'
      ? ['-c', 'ssl=on', '-c', `ssl_cert_file=${cert}`, '-c', `ssl_key_file=${key}`]
      : [`--ssl-cert=${cert}`, `--ssl-key=${key}`];
  }

  /** Starts it, or starts it again with what it had. */
  async begin(): Promise<void> {
    const port = String(this.port);
    const [command, ...args]: [string, ...string[]] =
      this.kind === 'postgres'
        ? [tool('postgres'), '-D', this.#data, '-p', port, '-h', '127.0.0.1', '-k', this.#dir, '-c', 'fsync=off']
        : [
            'mariadbd',
            '--no-defaults',
            `--datadir=${this.#data}`,
            `--port=${port}`,
            '--bind-address=127.0.0.1',
            `--socket=${join(this.#dir, 'socket')}`,
            '--innodb-flush-log-at-trx-commit=0',
          ];
    this.#process = spawn(...this.#asUser(command, [...args, ...this.#tlsOptions()]), { stdio: 'ignore' });
    await once(this.#process, 'spawn');
    await eventually(`${this.kind} listens`, () => this.#listens(), 30_000);
  }

  #listens(): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = connect(this.port, '127.0.0.1');
      socket.once('error', () => {
        resolve(false);
      });
      // A server that starts up, or another program, would end the connection without a word.
      socket.once('connect', () => {
        socket.destroy();
        resolve(true);
      });
    });
  }

  /** @returns the URL of a new, empty database. */
  async newDatabase(): Promise<string> {
    this.#databases += 1;
    const name = `llmp_${this.#databases}`;
    const admin = new Sequelize(this.#urlOf(this.kind === 'postgres' ? 'postgres' : 'mysql'), { logging: false });
    await eventually(`${this.kind} serves`, () =>
      admin.query('SELECT 1').then(
        () => true,
        () => false,
      ),
    );
    await admin.query(`CREATE DATABASE ${name}`);
    await admin.close();
    return this.#urlOf(name);
  }

  #urlOf(database: string): string {
    return this.kind === 'postgres'
      ? `postgres://llmp@127.0.0.1:${this.port}/${database}`
      : `mysql://root@127.0.0.1:${this.port}/${database}`;
  }

  /** As if the machine stood still: connections stay, nothing answers. */
  freeze(): void {
    this.#each(standStill);
  }

  resume(): void {
    this.#each((pid) => process.kill(pid, 'SIGCONT'));
  }

  /** Each connection to PostgreSQL has a process of its own. */
  #each(act: (pid: number) => boolean): void {
    const pid = this.#process?.pid;
    if (pid === undefined) return;
    act(pid); // First, so that it has no more of them.
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    for (const child of children.split(' ').filter(Boolean)) {
      try {
        act(Number(child));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // It has ended meanwhile.
      }
    }
  }

  async stop(): Promise<void> {
    const server = this.#process;
    if (!server) return;
    this.resume();
    this.#process = null;
    // For PostgreSQL: without waiting for those who are connected.
    server.kill(this.kind === 'postgres' ? 'SIGINT' : 'SIGTERM');
    if (server.exitCode === null) await once(server, 'exit');
  }

  /** With all that it had. */
  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

const tool = (name: string) => (POSTGRES_BIN ? join(POSTGRES_BIN, name) : name);
