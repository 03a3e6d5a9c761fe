/** nginx with the shipped example configuration for two instances. Only paths and ports differ. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join, resolve } from 'node:path';
import { temporaryFolder } from './daemon.js';
import { eventually } from './eventually.js';
import { freePort } from './ports.js';

/** Says why tests of nginx are skipped here. Where everything must be installed, they fail instead. */
export const WITHOUT_NGINX =
  process.env.CI !== 'true' && spawnSync('nginx', ['-v']).error ? ' (skipped: no nginx here)' : '';

const EXAMPLE = resolve(import.meta.dirname, '../../../config/nginx/llmp.conf');

export class Nginx {
  readonly port: number;
  readonly #dir = temporaryFolder();
  #process: ChildProcess | null = null;

  private constructor(port: number) {
    this.port = port;
  }

  /** @param sockets the sockets of the two instances, which need not be running. @param port by default a free one. */
  static async start(sockets: readonly [string, string], port?: number): Promise<Nginx> {
    const nginx = new Nginx(port ?? (await freePort()));
    await nginx.#begin(sockets);
    return nginx;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get complaints(): string {
    return readFileSync(join(this.#dir, 'error.log'), 'utf8');
  }

  /** nginx tries each instance, without health checks. */
  sendsTo(): boolean {
    return true;
  }

  async #begin([one, other]: readonly [string, string]): Promise<void> {
    const others: [from: string, to: string][] = [
      ['server unix:/run/llmp-1/llmp.sock ', `server unix:${one} `],
      ['server unix:/run/llmp-2/llmp.sock ', `server unix:${other} `],
      ['listen 80;', `listen 127.0.0.1:${this.port};`],
    ];
    let example = readFileSync(EXAMPLE, 'utf8');
    for (const [from, to] of others) {
      if (example.split(from).length !== 2) throw new Error(`not once in the example: ${from}`);
      example = example.replace(from, to);
    }
    writeFileSync(join(this.#dir, 'llmp.conf'), example);
    mkdirSync(join(this.#dir, 'temporary'));
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (what) => `${what}_temp_path ${this.#dir}/temporary/${what};`,
    );
    const main = [
      ...(process.getuid?.() === 0 ? ['user root;'] : []),
      'daemon off;',
      `pid ${this.#dir}/nginx.pid;`,
      `error_log ${this.#dir}/error.log info;`,
      'events { worker_connections 1024; }',
      `http { access_log off; ${temporary.join(' ')} include ${this.#dir}/llmp.conf; }`,
    ].join('\n');
    writeFileSync(join(this.#dir, 'nginx.conf'), `${main}\n`);
    const args = ['-c', join(this.#dir, 'nginx.conf'), '-e', join(this.#dir, 'error.log')];
    const checked = spawnSync('nginx', [...args, '-t'], { encoding: 'utf8' });
    if (checked.status !== 0) throw new Error(checked.stderr);
    if (checked.stderr.includes('[warn]')) throw new Error(checked.stderr);
    this.#process = spawn('nginx', args, { stdio: 'ignore' });
    await once(this.#process, 'spawn');
    await eventually('nginx listens', () => listens(this.port));
  }

  async stop(): Promise<void> {
    const nginx = this.#process;
    this.#process = null;
    if (!nginx) return;
    nginx.kill('SIGTERM');
    if (nginx.exitCode === null) await once(nginx, 'exit');
  }
}

/** Whether something accepts connections on this port. */
export function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', () => {
      resolve(false);
    });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}
