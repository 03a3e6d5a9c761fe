/** A daemon in a separate process, so that its memory can be measured. Clients and upstream are in this process. It runs in real time. */
import { readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { ManagementClient } from '../../../daemon/api/client.js';
import { cpuMs, rssMb } from '../../bench/machine.js';
import { MANAGEMENT_TOKEN, temporaryFolder, UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { type DaemonProcess, launchDaemon } from '../../support/process.js';
import { RawClient } from '../../support/raw.js';
import { ScriptedUpstream } from './upstream.js';

/** Resets the highest memory of a process. */
export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

export class MeasuredDaemon {
  readonly upstream: ScriptedUpstream;
  readonly #daemon: DaemonProcess;
  readonly #url: string;
  /** The secret of a token without a cap. */
  readonly secret: string;

  private constructor(upstream: ScriptedUpstream, daemon: DaemonProcess, url: string, secret: string) {
    this.upstream = upstream;
    this.#daemon = daemon;
    this.#url = url;
    this.secret = secret;
  }

  static async start(env: Record<string, string> = {}): Promise<MeasuredDaemon> {
    const upstream = await new ScriptedUpstream().listen();
    const daemon = launchDaemon(
      {
        MANAGEMENT_TOKEN,
        UPSTREAM_BASE_URL: upstream.url,
        DATABASE_URL: `${temporaryFolder()}/llmp.db`,
        // A log line for each of ten thousand requests would be measured too.
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
    return new MeasuredDaemon(upstream, daemon, url, token);
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

  /** What the daemon has open, including sockets, in the order of descriptor numbers. */
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

  /** What it holds after a garbage collection, in MB. */
  async heldMb(): Promise<number> {
    const { printed } = this.#daemon;
    const seen = printed.stderr.length;
    const said = () => /^holds (\d+)$/m.exec(printed.stderr.slice(seen))?.[1];
    this.#daemon.child.kill('SIGUSR2');
    await eventually('it reports what it holds', said);
    return Number(said()) / 1e6;
  }

  /** Its resident memory, including garbage, in MB. */
  get residentMb(): number {
    return rssMb(this.#pid, 'now');
  }

  /** The highest resident memory since `forgetPeak`. */
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

  /** The daemon's CPU use, from 0 to 1. Without requests, a timer that was not stopped would show here. */
  async load(windowMs = 2_000): Promise<number> {
    const before = cpuMs(this.#pid) ?? 0;
    await sleep(windowMs);
    return ((cpuMs(this.#pid) ?? 0) - before) / windowMs;
  }

  /** Waits until the daemon has finished all requests. */
  quiet(): Promise<void> {
    return eventually('the daemon is quiet', async () => (await this.load(250)) < 0.1, 60_000);
  }
}
