/** HAProxy with the shipped example configuration for two instances. Only paths and ports differ. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { temporaryFolder } from './daemon.js';
import { eventually } from './eventually.js';
import { listens } from './nginx.js';
import { freePort } from './ports.js';

/** Says why tests of HAProxy are skipped here. With `CI=true` they fail instead. */
export const WITHOUT_HAPROXY =
  process.env.CI !== 'true' && spawnSync('haproxy', ['-v']).error ? ' (skipped: no haproxy here)' : '';

const EXAMPLE = resolve(import.meta.dirname, '../../../config/haproxy/llmp.cfg');

export interface Instance {
  /** The path of its unix socket for clients. */
  socket: string;
  /** Its port for `/manage` and `/ready`. */
  managementPort: number;
}

export class HaProxy {
  readonly port: number;
  readonly #file = join(temporaryFolder(), 'llmp.cfg');
  #process: ChildProcess | null = null;
  #output = '';

  private constructor(port: number) {
    this.port = port;
  }

  /** @param instances the two instances, which need not be running. @param port by default a free one. */
  static async start(instances: readonly [Instance, Instance], port?: number): Promise<HaProxy> {
    const haproxy = new HaProxy(port ?? (await freePort()));
    await haproxy.#begin(instances);
    return haproxy;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** What it has printed: warnings, and servers that went down or up. */
  get complaints(): string {
    return this.#output;
  }

  /** Whether it sends requests to an instance, by its last health check. @param index 0 or 1. */
  sendsTo(index: number): boolean {
    const states = [...this.#output.matchAll(new RegExp(`llmp-${index + 1} is (UP|DOWN)`, 'g'))];
    return states.at(-1)?.[1] !== 'DOWN';
  }

  async #begin([one, other]: readonly [Instance, Instance]): Promise<void> {
    const replacements: [from: string, to: string][] = [
      [
        'unix@/run/llmp-1/llmp.sock addr 127.0.0.1 port 9081',
        `unix@${one.socket} addr 127.0.0.1 port ${one.managementPort}`,
      ],
      [
        'unix@/run/llmp-2/llmp.sock addr 127.0.0.1 port 9082',
        `unix@${other.socket} addr 127.0.0.1 port ${other.managementPort}`,
      ],
      ['bind :80\n', `bind 127.0.0.1:${this.port}\n`],
    ];
    let example = readFileSync(EXAMPLE, 'utf8');
    for (const [from, to] of replacements) {
      if (example.split(from).length !== 2) throw new Error(`not once in the example: ${from}`);
      example = example.replace(from, to);
    }
    writeFileSync(this.#file, example);
    const checked = spawnSync('haproxy', ['-c', '-f', this.#file], { encoding: 'utf8' });
    if (checked.status !== 0 || /WARNING|ALERT/.test(checked.stderr)) throw new Error(checked.stderr);
    const child = spawn('haproxy', ['-db', '-f', this.#file], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#process = child;
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (this.#output += String(text)));
    await once(child, 'spawn');
    await eventually('HAProxy listens', () => listens(this.port));
  }

  async stop(): Promise<void> {
    const haproxy = this.#process;
    this.#process = null;
    if (!haproxy) return;
    haproxy.kill('SIGTERM');
    if (haproxy.exitCode === null) await once(haproxy, 'exit');
  }
}
