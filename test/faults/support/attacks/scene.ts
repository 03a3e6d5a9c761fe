/**
 * One attack on a real daemon: another project's requests run at a steady rate before, during and after it. Daemon, attackers, providers and the
 * steady client are processes of their own. It runs in real time.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ManagementClient } from '../../../../daemon/api/client.js';
import { treeCpuMs } from '../../../bench/machine.js';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../../../support/daemon.js';
import { canary } from '../../../support/canaries.js';
import { type DaemonProcess, launchDaemon } from '../../../support/process.js';
import { type AttackOptions, planOf, SECRET } from './catalog.js';
import { Child } from './child.js';
import { Memory } from './memory.js';
import type {
  AttackerPlan,
  AttackerReport,
  ProviderPlan,
  ProviderReport,
  SteadyPlan,
  SteadyReport,
  SteadyRequest,
} from './plans.js';

const PER_SECOND = 50;
const WARM_UP_MS = 1_500;
const GRACE_S = 5;
/** How long after the grace a daemon may take to end before it is killed. */
const LATEST_MS = 5_000;

export interface SceneOptions extends AttackOptions {
  seconds: number;
  /** How long the other project is measured before and after it. */
  aloneSeconds: number;
  workers: number;
  heapMb: number;
  /** The folder of the clone whose build is attacked; undefined: this one. */
  daemon?: string | undefined;
}

/** Times in ms; null without any request. */
export interface Phase {
  p50Ms: number | null;
  p99Ms: number | null;
  requests: number;
  /** By status; 0: no response. */
  statuses: Record<number, number>;
}

export interface SceneResult {
  before: Phase;
  during: Phase;
  after: Phase;
  /** Resident memory of all processes of the daemon, in MB of 10^6 bytes. */
  rssBeforeMb: number;
  rssPeakMb: number;
  rssAfterMb: number;
  /** The largest heap, and the most memory outside of it, of any process. */
  heapBeforeMb: number;
  heapPeakMb: number;
  externalPeakMb: number;
  /** CPU time of the daemon during the attack, and for each MB that attackers and their provider sent. */
  cpuMs: number;
  cpuMsPerMb: number | null;
  /** How the daemon ended by itself, during the attack or after it; null if it did not. */
  died: string | null;
  /** Worker processes that ended. */
  workersLost: number;
  attackers: AttackerReport;
  /** Bytes that the attackers' provider sent, in MB. */
  providerSentMb: number;
  /** How long the daemon took to end after SIGTERM, and its exit code; null if it had to be killed, or had ended before. */
  stopMs: number | null;
  stopCode: number | null;
  /** Requests that a provider received, and how many of them are recorded after a restart, as uses of the token and in the usage report. */
  uses: Record<'steady' | 'attackers', { forwarded: number; counted: number; reported: number }>;
}

interface Tenant {
  id: string;
  secret: string;
}

export async function runAttack(options: SceneOptions): Promise<SceneResult> {
  const scene = new Scene(options);
  // The daemon would survive this process.
  const stopAtOnce = () => void scene.stop().finally(() => process.exit(1));
  process.once('SIGTERM', stopAtOnce).once('SIGINT', stopAtOnce);
  try {
    return await scene.run();
  } finally {
    await scene.stop();
  }
}

const PROVIDER_ANSWER = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model: 'steady',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello there' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
});

const STEADY_PROVIDER: ProviderPlan = {
  reads: true,
  response: `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${PROVIDER_ANSWER.length}\r\n\r\n${PROVIDER_ANSWER}`,
  delayMs: 5,
};

type ProviderChild = Child<ProviderPlan, { url: string }, ProviderReport>;

class Scene {
  readonly #options: SceneOptions;
  readonly #dir = temporaryFolder();
  readonly #heaps = join(this.#dir, 'heaps');
  readonly #children: { stop(): Promise<void> }[] = [];
  #daemon: DaemonProcess | undefined;

  constructor(options: SceneOptions) {
    this.#options = options;
    mkdirSync(this.#heaps);
  }

  async run(): Promise<SceneResult> {
    const { env, provider: plan, attacker } = planOf(this.#options);
    const steadyProvider = this.#provider(STEADY_PROVIDER);
    const hostileProvider = this.#provider(plan);
    const daemon = this.#launch(env);
    const url = await daemon.listening;
    const pid = daemon.child.pid ?? 0;
    const steady = await this.#tenant(url, 'steady', (await steadyProvider.ready).url);
    const hostile = await this.#tenant(url, 'hostile', (await hostileProvider.ready).url);

    const client = this.#child<SteadyPlan, object, SteadyReport>('steady.js', {
      url,
      secret: steady.secret,
      perSecond: PER_SECOND,
    });
    const aloneMs = this.#options.aloneSeconds * 1_000;
    const isAlive = () => daemon.child.exitCode === null && daemon.child.signalCode === null;
    const memory = new Memory(pid, this.#heaps);
    const times = [await passed(WARM_UP_MS), await passed(aloneMs)];
    const before = memory.now();
    const workers = memory.processes();
    memory.forget();
    const cpuBeforeMs = treeCpuMs(pid);
    const attackers = this.#child<AttackerPlan & { url: string }, object, AttackerReport>('attacker.js', {
      ...attacker,
      head: attacker.head.replace(SECRET, hostile.secret),
      url,
    });
    times.push(await passed(this.#options.seconds * 1_000));
    // Nothing says how much a process has used that has ended.
    const cpuMs = isAlive() ? treeCpuMs(pid) - cpuBeforeMs : NaN;
    const ended = await attackers.report();
    const providerReport = await hostileProvider.report();
    const workersLost = this.#options.workers > 1 ? workers.filter((it) => !memory.processes().includes(it)).length : 0;
    await attackers.stop();
    times.push(await passed(aloneMs));
    const { requests } = await client.report();
    const after = memory.now();
    const peak = memory.stop();
    const died = isAlive() ? null : whyEnded(daemon);
    const stopMs = await this.#end();
    const forwarded = {
      steady: (await steadyProvider.report()).requests,
      attackers: (await hostileProvider.report()).requests,
    };
    const [warm = 0, begun = 0, over = 0, end = 0] = times;
    const sentMb = (ended.sentBytes + providerReport.sentBytes) / 1e6;
    return {
      before: phaseOf(requests, warm, begun),
      during: phaseOf(requests, begun, over),
      after: phaseOf(requests, over, end),
      rssBeforeMb: before.rssMb,
      rssPeakMb: peak.rssMb,
      rssAfterMb: after.rssMb,
      heapBeforeMb: before.heapMb,
      heapPeakMb: peak.heapMb,
      externalPeakMb: peak.externalMb,
      cpuMs,
      cpuMsPerMb: sentMb === 0 ? null : cpuMs / sentMb,
      died,
      workersLost,
      attackers: ended,
      providerSentMb: providerReport.sentBytes / 1e6,
      stopMs: died === null ? stopMs : null,
      stopCode: died === null ? daemon.child.exitCode : null,
      uses: await this.#uses(env, { steady, attackers: hostile }, forwarded),
    };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.stop()));
    await this.#daemon?.kill();
  }

  #launch(env: Record<string, string>): DaemonProcess {
    const { workers, heapMb, daemon } = this.#options;
    const probe = new URL(`heap-probe.js?folder=${encodeURIComponent(this.#heaps)}`, import.meta.url);
    this.#daemon = launchDaemon(
      {
        MANAGEMENT_TOKEN,
        UPSTREAM_BASE_URL: 'http://127.0.0.1:9',
        DATABASE_URL: join(this.#dir, 'llmp.db'),
        LOG_LEVEL: 'info',
        ENABLE_METRICS: 'true',
        ADMIN_UI_ENABLED: 'true',
        SHUTDOWN_DELAY: '0',
        SHUTDOWN_GRACE: `${GRACE_S}s`,
        WORKERS: String(workers),
        ...env,
      },
      {
        nodeOptions: [`--max-old-space-size=${heapMb}`, '--import', probe.href],
        ...(daemon !== undefined && { program: join(daemon, 'dist/cli/main.js') }),
      },
    );
    return this.#daemon;
  }

  #provider(plan: ProviderPlan): ProviderChild {
    return this.#child('provider.js', plan);
  }

  #child<Plan extends object, Ready extends object, Report extends object>(
    program: string,
    plan: Plan,
  ): Child<Plan, Ready, Report> {
    const child = new Child<Plan, Ready, Report>(program, plan);
    this.#children.push(child);
    return child;
  }

  async #tenant(url: string, name: string, provider: string): Promise<Tenant> {
    const management = managementOf(url);
    const project = await management.createProject({
      name,
      api_key: canary('upstream'),
      upstream_base_url: provider,
    });
    const { id, token } = await management.createToken({ project_id: project.id });
    return { id, secret: token };
  }

  /** @returns how long it took; null if it had to be killed. */
  async #end(): Promise<number | null> {
    const daemon = this.#daemon;
    if (!daemon) return null;
    const begun = performance.now();
    daemon.child.kill('SIGTERM');
    const isEnded = await Promise.race([daemon.exit.then(() => true), sleep(GRACE_S * 1_000 + LATEST_MS, false)]);
    const tookMs = performance.now() - begun;
    await daemon.kill();
    return isEnded ? tookMs : null;
  }

  /** Asks a daemon that continues with the same database. */
  async #uses(
    env: Record<string, string>,
    tenants: Record<'steady' | 'attackers', Tenant>,
    forwarded: Record<'steady' | 'attackers', number>,
  ): Promise<SceneResult['uses']> {
    const url = await this.#launch(env).listening;
    const management = managementOf(url);
    const usesOf = async (who: 'steady' | 'attackers') => {
      const { id } = tenants[who];
      const { request_count: counted } = await management.token(id);
      const lines = await management.usage({ token_id: id });
      const reported = lines.reduce((sum, { requests }) => sum + requests, 0);
      return { forwarded: forwarded[who], counted, reported };
    };
    return { steady: await usesOf('steady'), attackers: await usesOf('attackers') };
  }
}

function managementOf(server: string): ManagementClient {
  return new ManagementClient({ server, managementToken: MANAGEMENT_TOKEN, frontEnd: 'cli', timeoutMs: 10_000, fetch });
}

const nowMs = () => performance.timeOrigin + performance.now();

/** Waits, and returns the wall-clock time after it. */
const passed = (ms: number) => sleep(ms).then(nowMs);

function whyEnded({ child, printed }: DaemonProcess): string {
  const said = /FATAL ERROR: (.*)/.exec(printed.stderr)?.[1] ?? printed.stderr.trim().split('\n').at(-1) ?? '';
  return `${child.signalCode ?? child.exitCode}: ${said}`;
}

export function phaseOf(all: readonly SteadyRequest[], fromMs: number, toMs: number): Phase {
  const those = all.filter(({ atMs }) => atMs >= fromMs && atMs < toMs);
  const times = those.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
  const statuses: Record<number, number> = {};
  for (const { status } of those) statuses[status] = (statuses[status] ?? 0) + 1;
  const quantile = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? null;
  return { p50Ms: quantile(0.5), p99Ms: quantile(0.99), requests: those.length, statuses };
}
