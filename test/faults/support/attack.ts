/**
 * An attack on a process with a small heap: another process holds hostile connections while a few polite clients send requests. The result
 * is what that cost in memory, time and failed responses. It runs in real time.
 */
import { fork } from 'node:child_process';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { rssMb } from '../../bench/machine.js';
import { eventually } from '../../support/eventually.js';
import { forgetPeak } from './measured-daemon.js';
import type { HostileReport, AttackPlan } from './hostile.js';
import { ServedDaemon, type ServedDaemonOptions } from './served-daemon.js';

export type { AttackPlan as Hostility };

const HOSTILE = join(import.meta.dirname, 'hostile.js');
export const SMALL_HEAP = '--max-old-space-size=256';

const POLITE_CLIENTS = 4;
const POLITE_PAUSE_MS = 10;
const READY_EVERY_MS = 200;
const WARM_UP_MS = 1_000;
const ALONE_MS = 6_000;
/** The time in which the data of the last connection may arrive. */
const SENT_WITHIN_MS = 1_500;

/** The process that is attacked. */
export interface Target {
  pid: number;
  /** The URL that the hostile connections go to. */
  url: string;
  /** The URL that the polite clients request. */
  polite: string;
  /** Their token, if they need one. */
  secret: string | null;
  /** The URL of `/ready`. */
  ready: string;
  isAlive: () => boolean;
}

/** The results of the polite clients. */
export interface ClientResults {
  requests: number;
  p50Ms: number;
  p99Ms: number;
  /** The number of responses by status; 0 for a failed connection. */
  statuses: Record<number, number>;
}

export interface AttackResult {
  /** Before the attack. */
  before: ClientResults;
  /** While the connections are made and send their data. */
  arriving: ClientResults;
  /** While they are held. */
  held: ClientResults;
  /** After they are closed. */
  after: ClientResults;
  /** The highest memory of the process during the attack minus its memory before, in MB of 10^6 bytes. */
  grewMb: number;
  /** The p99 of the polite clients while the connections were held, as a multiple of the one without them. */
  p99Ratio: number;
  /** All statuses that the polite clients got during the attack. */
  statuses: Record<number, number>;
  isAlive: boolean;
  /** The statuses of `/ready` during the attack. */
  ready: Record<number, number>;
  hostile: HostileReport;
}

/** Starts a daemon to be attacked, with a heap of 256 MB, metrics and the Admin UI. */
export function startAttacked({ env, nodeOptions, ...options }: ServedDaemonOptions = {}): Promise<ServedDaemon> {
  return ServedDaemon.start({
    ...options,
    nodeOptions: [SMALL_HEAP, ...(nodeOptions ?? [])],
    env: { ENABLE_METRICS: 'true', LOG_LEVEL: 'info', ...env },
  });
}

/** @param url what is attacked, if it is not the listener that the polite clients use. */
export function targetOf(served: ServedDaemon, url = served.url): Target {
  return {
    pid: served.pid,
    url,
    polite: `${served.url}/v1/models`,
    secret: served.secret,
    ready: `${served.url}/ready`,
    isAlive: () => served.process.child.exitCode === null && served.process.child.signalCode === null,
  };
}

/** Measures the polite clients for a while, attacks, holds the attack for the given time, and measures again. */
export async function attack(target: Target, hostility: AttackPlan, heldMs: number): Promise<AttackResult> {
  const polite = new Polite(target);
  const since = (ms: number) => sleep(ms).then(() => performance.now());
  try {
    const warm = await since(WARM_UP_MS); // What the first requests allocate is not measured.
    const begun = await since(ALONE_MS);
    const beforeMb = rssMb(target.pid, 'now');
    forgetPeak(target.pid);
    const watching = new Ready(target.ready);
    const attackers = await begin(target.url, hostility);
    await eventually(
      'all have connected',
      () => attackers.report().opened >= hostility.connections || !target.isAlive(),
    );
    const standing = await since(SENT_WITHIN_MS);
    const ended = await since(heldMs);
    const isAlive = target.isAlive();
    // The kernel reports no peak for a process that has ended.
    const grewMb = isAlive ? rssMb(target.pid, 'highest') - beforeMb : NaN;
    const hostile = attackers.report();
    await attackers.stop();
    const gone = await since(SENT_WITHIN_MS);
    const over = isAlive ? await since(ALONE_MS) : gone;
    const [before, arriving, held, after] = [
      polite.between(warm, begun),
      polite.between(begun, standing),
      polite.between(standing, ended),
      polite.between(gone, over),
    ];
    return {
      before,
      arriving,
      held,
      after,
      grewMb,
      p99Ratio: held.p99Ms / Math.max(before.p99Ms, after.p99Ms),
      statuses: polite.between(begun, over).statuses,
      isAlive,
      ready: await watching.stop(),
      hostile,
    };
  } finally {
    polite.stop();
  }
}

const MOST_OF_P99 = 1.2;
/** The variation of p99 between runs on a quiet machine without an attack. */
const UNSTEADY_MS = 10;

export interface AttackLimits {
  /** The highest permitted growth of the process, in MB of 10^6 bytes. */
  mostMb?: number;
  /** False if the connections are served: they cost other clients what any load costs. */
  isP99Judged?: boolean;
}

/** Prints what an attack cost, and fails if it cost more than a thousand connections may. */
export function expectWithinLimits(
  title: string,
  damage: AttackResult,
  { mostMb = 64, isP99Judged = true }: AttackLimits = {},
): void {
  console.log(`      ${title}: ${summaryOf(damage)}`);
  expect(damage.isAlive, 'the process lives').to.equal(true);
  expect(Object.keys(damage.statuses), 'the statuses of the polite clients').to.deep.equal(['200']);
  expect(damage.grewMb, 'MB more').to.be.below(mostMb);
  if (!isP99Judged) return;
  const alone = Math.max(damage.before.p99Ms, damage.after.p99Ms);
  expect(damage.held.p99Ms, 'p99 of the polite clients, in ms').to.be.below(MOST_OF_P99 * alone + UNSTEADY_MS);
}

/** The results in one line. */
function summaryOf({ before, arriving, held, after, grewMb, p99Ratio, isAlive, ...rest }: AttackResult): string {
  const count = (statuses: Record<number, number>) =>
    Object.entries(statuses)
      .map(([status, times]) => `${times}×${status}`)
      .join(' ');
  const times = [before, arriving, held, after].map(({ p50Ms, p99Ms }) => `${p50Ms.toFixed(1)}/${p99Ms.toFixed(1)}`);
  const { statuses, ready, hostile } = rest;
  return [
    `${isAlive ? 'lives' : 'DIED'}, +${grewMb.toFixed(0)} MB`,
    `p50/p99 in ms ${times.join(' → ')} (held ×${p99Ratio.toFixed(2)})`,
    `responses ${count(statuses)}, ready ${count(ready)}`,
    `hostile: ${hostile.open} open of ${hostile.opened}, ${hostile.ended} ended, ${hostile.sentMb.toFixed(0)} MB sent by those`,
  ].join('; ');
}

/** Starts the hostile process. Resolves when its first connections are open. */
async function begin(url: string, hostility: AttackPlan) {
  const child = fork(HOSTILE, { stdio: 'inherit' });
  const gone = new Promise<void>((resolve) => child.once('exit', resolve));
  let last: HostileReport = { open: 0, opened: 0, ended: 0, sentMb: 0 };
  child.on('message', (said) => (last = said as HostileReport));
  child.send({ url, hostility });
  await eventually('the attack begins', () => last.opened > 0 || child.exitCode !== null);
  return {
    report: () => last,
    async stop() {
      if (child.connected) child.disconnect();
      await gone;
    },
  };
}

interface Answered {
  atMs: number;
  tookMs: number;
  status: number;
}

/** A few clients that keep their connections open and send requests continuously, as an application does. */
class Polite {
  readonly #answered: Answered[] = [];
  readonly #agent = new Agent({ keepAlive: true, maxSockets: POLITE_CLIENTS });
  #isOver = false;

  constructor(target: Target) {
    for (let i = 0; i < POLITE_CLIENTS; i++) void this.#ask(target);
  }

  async #ask({ polite, secret }: Target): Promise<void> {
    while (!this.#isOver) {
      const atMs = performance.now();
      const status = await statusOf(polite, this.#agent, secret, 30_000);
      this.#answered.push({ atMs, tookMs: performance.now() - atMs, status });
      await sleep(POLITE_PAUSE_MS);
    }
  }

  /** The results of requests that began between two times of `performance.now()`. */
  between(fromMs: number, toMs: number): ClientResults {
    const those = this.#answered.filter(({ atMs }) => atMs >= fromMs && atMs < toMs);
    const times = those.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
    const statuses: Record<number, number> = {};
    for (const { status } of those) statuses[status] = (statuses[status] ?? 0) + 1;
    const quantile = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? NaN;
    return { requests: those.length, p50Ms: quantile(0.5), p99Ms: quantile(0.99), statuses };
  }

  stop(): void {
    this.#isOver = true;
    this.#agent.destroy();
  }
}

/** Requests `/ready` continuously, each time on a new connection, as a load balancer does. */
class Ready {
  readonly #seen: Record<number, number> = {};
  readonly #over = new AbortController();
  readonly #watching: Promise<void>;

  constructor(url: string) {
    this.#watching = this.#watch(url);
  }

  async #watch(url: string): Promise<void> {
    while (!this.#over.signal.aborted) {
      const status = await statusOf(url, undefined, null, 10_000);
      this.#seen[status] = (this.#seen[status] ?? 0) + 1;
      await sleep(READY_EVERY_MS);
    }
  }

  /** @returns the number of responses by status. */
  async stop(): Promise<Record<number, number>> {
    this.#over.abort();
    await this.#watching;
    return this.#seen;
  }
}

/** 0 without a response. */
function statusOf(url: string, agent: Agent | undefined, secret: string | null, withinMs: number): Promise<number> {
  return new Promise((resolve) => {
    const headers = secret === null ? {} : { Authorization: `Bearer ${secret}` };
    const request = get(url, { agent: agent ?? false, headers, timeout: withinMs }, (res) => {
      res.resume();
      res.on('error', () => undefined);
      res.once('close', () => {
        resolve(res.complete ? (res.statusCode ?? 0) : 0);
      });
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => {
      resolve(0);
    });
  });
}
