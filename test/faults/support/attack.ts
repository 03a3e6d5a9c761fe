/**
 * An attack on a process with a small heap: hostile connections from another process hold on while a few polite clients go on
 * asking. It tells what that cost: memory, time, answers. Time is real here.
 */
import { fork } from 'node:child_process';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { rssMb } from '../../bench/machine.js';
import { eventually } from '../../support/eventually.js';
import { forgetPeak } from './measured.js';
import type { HostileReport, Hostility } from './hostile.js';
import { Served, type ServedOptions } from './served.js';

export type { Hostility };

const HOSTILE = join(import.meta.dirname, 'hostile.js');
export const SMALL_HEAP = '--max-old-space-size=256';

const POLITE_CLIENTS = 4;
const POLITE_PAUSE_MS = 10;
const READY_EVERY_MS = 200;
const WARM_UP_MS = 1_000;
const ALONE_MS = 6_000;
/** How long what the last connection sends may take to arrive. */
const SENT_WITHIN_MS = 1_500;

/** What is attacked. */
export interface Target {
  pid: number;
  /** Where the hostile connections go. */
  url: string;
  /** What the polite clients ask for. */
  polite: string;
  /** Their token, if they need one. */
  secret: string | null;
  /** The URL of `/ready`. */
  ready: string;
  isAlive: () => boolean;
}

/** How the polite clients fared. */
export interface Fared {
  requests: number;
  p50Ms: number;
  p99Ms: number;
  /** How often each status; 0 stands for a connection that failed. */
  statuses: Record<number, number>;
}

export interface Damage {
  /** Before the attack. */
  before: Fared;
  /** While the connections are made and send. */
  arriving: Fared;
  /** While they are held. */
  held: Fared;
  /** When they are gone. */
  after: Fared;
  /** What the process had in memory at most during the attack, beyond what it had before, in MB of 10^6 bytes. */
  grewMb: number;
  /** The p99 of the polite clients while the connections were held, as a multiple of the one without them. */
  p99Ratio: number;
  /** All that the polite clients were answered during the attack. */
  statuses: Record<number, number>;
  isAlive: boolean;
  /** What `/ready` said during the attack. */
  ready: Record<number, number>;
  hostile: HostileReport;
}

/** A daemon at a heap of 256 MB, with metrics and the Admin UI, to be attacked. */
export function startAttacked({ env, nodeOptions, ...options }: ServedOptions = {}): Promise<Served> {
  return Served.start({
    ...options,
    nodeOptions: [SMALL_HEAP, ...(nodeOptions ?? [])],
    env: { ENABLE_METRICS: 'true', LOG_LEVEL: 'info', ...env },
  });
}

/** @param url what is attacked, if not the listener that the polite clients ask. */
export function targetOf(served: Served, url = served.url): Target {
  return {
    pid: served.pid,
    url,
    polite: `${served.url}/v1/models`,
    secret: served.secret,
    ready: `${served.url}/ready`,
    isAlive: () => served.process.child.exitCode === null && served.process.child.signalCode === null,
  };
}

/** Measures the polite clients for a while, attacks, holds the attack for so long, and measures again. */
export async function attack(target: Target, hostility: Hostility, heldMs: number): Promise<Damage> {
  const polite = new Polite(target);
  const since = (ms: number) => sleep(ms).then(() => performance.now());
  try {
    const warm = await since(WARM_UP_MS); // What is made at the first requests is not what is measured.
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
    // The kernel gives no peak of a process that is gone.
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
/** By so much p99 differs from one run to the next on a quiet machine, without any attack. */
const UNSTEADY_MS = 10;

export interface Bearable {
  /** What the process may take at most, in MB of 10^6 bytes. */
  mostMb?: number;
  /** False where the connections are served, and cost others what they would cost as anybody's. */
  isP99Judged?: boolean;
}

/** Prints what an attack cost, and fails when it was more than a process may suffer from a thousand connections. */
export function expectBearable(
  title: string,
  damage: Damage,
  { mostMb = 64, isP99Judged = true }: Bearable = {},
): void {
  console.log(`      ${title}: ${inWords(damage)}`);
  expect(damage.isAlive, 'the process lives').to.equal(true);
  expect(Object.keys(damage.statuses), 'what the polite clients are answered').to.deep.equal(['200']);
  expect(damage.grewMb, 'MB more').to.be.below(mostMb);
  if (!isP99Judged) return;
  const alone = Math.max(damage.before.p99Ms, damage.after.p99Ms);
  expect(damage.held.p99Ms, 'p99 of the polite clients, in ms').to.be.below(MOST_OF_P99 * alone + UNSTEADY_MS);
}

/** In one line. */
function inWords({ before, arriving, held, after, grewMb, p99Ratio, isAlive, ...rest }: Damage): string {
  const count = (statuses: Record<number, number>) =>
    Object.entries(statuses)
      .map(([status, times]) => `${times}×${status}`)
      .join(' ');
  const times = [before, arriving, held, after].map(({ p50Ms, p99Ms }) => `${p50Ms.toFixed(1)}/${p99Ms.toFixed(1)}`);
  const { statuses, ready, hostile } = rest;
  return [
    `${isAlive ? 'lives' : 'DIED'}, +${grewMb.toFixed(0)} MB`,
    `p50/p99 in ms ${times.join(' → ')} (held ×${p99Ratio.toFixed(2)})`,
    `answers ${count(statuses)}, ready ${count(ready)}`,
    `hostile: ${hostile.open} open of ${hostile.opened}, ${hostile.ended} ended, ${hostile.sentMb.toFixed(0)} MB sent by those`,
  ].join('; ');
}

/** Starts the hostile process. Resolves when its first connections are open. */
async function begin(url: string, hostility: Hostility) {
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

/** A few clients that keep their connections and ask again and again, as an application does. */
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

  /** Of what was asked between two times of `performance.now()`. */
  between(fromMs: number, toMs: number): Fared {
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

/** Asks `/ready` again and again, each time on a connection of its own, as a load balancer does. */
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

  /** @returns how often each status was answered. */
  async stop(): Promise<Record<number, number>> {
    this.#over.abort();
    await this.#watching;
    return this.#seen;
  }
}

/** 0 when there was no answer. */
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
