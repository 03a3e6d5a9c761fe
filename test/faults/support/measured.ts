/**
 * A daemon in a process of its own, so that what it holds can be measured: clients and upstream are in this one. Time is
 * real here.
 */
import { readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { ManagementClient } from '../../../daemon/api/client.js';
import { cpuMs, rssMb } from '../../bench/machine.js';
import { MANAGEMENT_TOKEN, temporaryFolder, UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { type DaemonProcess, launchDaemon } from '../../support/process.js';
import { RawClient } from '../../support/raw.js';
import { ScriptedUpstream } from './upstream.js';

/** From now on the highest memory of a process is the highest since. */
export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

export class Measured {
  readonly upstream: ScriptedUpstream;
  readonly #daemon: DaemonProcess;
  readonly #url: string;
  /** Of a token without a cap. */
  readonly secret: string;

  private constructor(upstream: ScriptedUpstream, daemon: DaemonProcess, url: string, secret: string) {
    this.upstream = upstream;
    this.#daemon = daemon;
    this.#url = url;
    this.secret = secret;
  }

  static async start(env: Record<string, string> = {}): Promise<Measured> {
    const upstream = await new ScriptedUpstream().listen();
    const daemon = launchDaemon(
      {
        MANAGEMENT_TOKEN,
        UPSTREAM_BASE_URL: upstream.url,
        DATABASE_URL: `${temporaryFolder()}/llmp.db`,
        // A line for each of ten thousand requests would be measured with them.
        LOG_LEVEL: 'info',
        ...env,
      },
      { nodeOptions: ['--expose-gc', '--import', new URL('collect.js', import.meta.url).href] },
    );
    const url = await daemon.listening;
    const client = new ManagementClient({
      server: url,
      managementToken: MANAGEMENT_TOKEN,
      frontEnd: 'cli',
      timeoutMs: 10_000,
      fetch,
    });
    const project = await client.createProject({ name: 'measured', api_key: UPSTREAM_KEY });
    const { token } = await client.createToken({ project_id: project.id });
    return new Measured(upstream, daemon, url, token);
  }

  async stop(): Promise<void> {
    await this.#daemon.kill();
    await this.upstream.stop();
  }

  client(): Promise<RawClient> {
    return RawClient.to(this.#url);
  }

  get #pid(): number {
    return this.#daemon.child.pid ?? 0;
  }

  /** What the daemon has open, sockets and all, in the order of its numbers. */
  get #open(): string[] {
    const folder = `/proc/${this.#pid}/fd`;
    return readdirSync(folder).map((descriptor) => {
      try {
        return readlinkSync(`${folder}/${descriptor}`);
      } catch {
        return 'closed meanwhile';
      }
    });
  }

  get descriptors(): number {
    return this.#open.length;
  }

  /** What it still holds once its garbage is thrown away, in MB. */
  async heldMb(): Promise<number> {
    const { printed } = this.#daemon;
    const seen = printed.stderr.length;
    const said = () => /^holds (\d+)$/m.exec(printed.stderr.slice(seen))?.[1];
    this.#daemon.child.kill('SIGUSR2');
    await eventually('it says what it holds', said);
    return Number(said()) / 1e6;
  }

  /** What it has in memory, garbage and all, in MB. */
  get residentMb(): number {
    return rssMb(this.#pid, 'now');
  }

  /** The most it had since `forgetPeak`. */
  get peakMb(): number {
    return rssMb(this.#pid, 'highest');
  }

  forgetPeak(): void {
    forgetPeak(this.#pid);
  }

  /** Waits until the daemon has no more descriptors than before. */
  async closed(before: number, withinMs: number): Promise<void> {
    await eventually(`${before} descriptors are left`, () => this.descriptors <= before, withinMs).catch(
      (error: unknown) => {
        throw new Error(`open: ${this.#open.join(' ')}`, { cause: error });
      },
    );
  }

  /** What the daemon uses of a processor, from 0 to 1. When nobody asks it anything a timer left ticking would show. */
  async load(windowMs = 2_000): Promise<number> {
    const before = cpuMs(this.#pid) ?? 0;
    await sleep(windowMs);
    return ((cpuMs(this.#pid) ?? 0) - before) / windowMs;
  }

  /** Waits until the daemon has done all that it was asked for. */
  quiet(): Promise<void> {
    return eventually('the daemon is quiet', async () => (await this.load(250)) < 0.1, 60_000);
  }
}
