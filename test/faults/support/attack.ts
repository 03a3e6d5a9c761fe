/**
 * An attack on a daemon with a small heap: hostile connections from another process hold on while a polite client goes on
 * asking. It tells what that cost: memory, time, answers. Time is real here.
 */
import { fork } from 'node:child_process';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { rssMb } from '../../bench/machine.js';
import { eventually } from '../../support/eventually.js';
import { forgetPeak } from './measured.js';
import type { HostileReport, Hostility } from './hostile.js';
import { Served, type ServedOptions } from './served.js';

export type { Hostility };

const HOSTILE = join(import.meta.dirname, 'hostile.js');
const HEAP_MB = 256;

const POLITE_CLIENTS = 4;
const POLITE_PAUSE_MS = 10;
const READY_EVERY_MS = 200;

/** How the polite client fared. */
export interface Fared {
  requests: number;
  p50Ms: number;
  p99Ms: number;
  /** How often each status; 0 stands for a connection that failed. */
  statuses: Record<number, number>;
}

export interface Damage {
  before: Fared;
  during: Fared;
  /** What the process had in memory at most during the attack, beyond what it had before, in MB of 10^6 bytes. */
  grewMb: number;
  /** The p99 of the polite client during the attack, as a multiple of the one before. */
  p99Ratio: number;
  isAlive: boolean;
  /** What `/ready` said during the attack. */
  ready: Record<number, number>;
  hostile: HostileReport;
}

/** A daemon at a heap of 256 MB, with metrics and the Admin UI, to be attacked. */
export function startAttacked({ env, nodeOptions, ...options }: ServedOptions = {}): Promise<Served> {
  return Served.start({
    ...options,
    nodeOptions: [`--max-old-space-size=${HEAP_MB}`, ...(nodeOptions ?? [])],
    env: { ENABLE_METRICS: 'true', LOG_LEVEL: 'info', ...env },
  });
}

export interface AttackOptions {
  /** What is attacked, if not the listener that the polite client asks. */
  url?: string;
  /** How long it lasts once it has begun. */
  forMs?: number;
  /** What the polite client asks for. */
  path?: string;
}

/** Measures the polite client for a while, attacks, and measures again. */
export async function attack(
  served: Served,
  hostility: Hostility,
  { url = served.url, forMs = 5_000, path = '/v1/models' }: AttackOptions = {},
): Promise<Damage> {
  // It keeps its connections, as an application does; those that connect anew are shown by `/ready`.
  const agent = new Agent({ keepAlive: true, maxSockets: POLITE_CLIENTS });
  const fareFor = (ms: number) => fare(`${served.url}${path}`, served.secret, agent, ms);
  await fareFor(1_000); // What is made at the first requests is not what is measured.
  const before = await fareFor(3_000);
  const beforeMb = rssMb(served.pid, 'now');
  forgetPeak(served.pid);
  const ready: Record<number, number> = {};
  const over = new AbortController();
  const watching = watchReady(served, ready, over.signal);
  const attackers = await begin(url, hostility);
  const during = await fareFor(forMs);
  // The kernel gives no peak of a process that is gone.
  const grewMb = rssMb(served.pid, 'highest') - beforeMb;
  over.abort();
  agent.destroy();
  await watching;
  await attackers.stop();
  return {
    before,
    during,
    grewMb,
    p99Ratio: during.p99Ms / before.p99Ms,
    isAlive: served.process.child.exitCode === null && served.process.child.signalCode === null,
    ready,
    hostile: attackers.report(),
  };
}

/** In one line. */
export function inWords({ before, during, grewMb, p99Ratio, isAlive, ready, hostile }: Damage): string {
  const count = (statuses: Record<number, number>) =>
    Object.entries(statuses)
      .map(([status, times]) => `${times}×${status}`)
      .join(' ');
  return [
    `${isAlive ? 'lives' : 'DIED'}, +${grewMb.toFixed(0)} MB`,
    `p50 ${before.p50Ms.toFixed(1)} → ${during.p50Ms.toFixed(1)} ms, p99 ${before.p99Ms.toFixed(1)} → ${during.p99Ms.toFixed(1)} ms (×${p99Ratio.toFixed(2)})`,
    `answers ${count(during.statuses)}, ready ${count(ready)}`,
    `hostile: ${hostile.open} open of ${hostile.opened}, ${hostile.ended} ended`,
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

/** A few clients that keep their connections and ask again and again, as an application does. */
async function fare(url: string, secret: string, agent: Agent, forMs: number): Promise<Fared> {
  const times: number[] = [];
  const statuses: Record<number, number> = {};
  const until = performance.now() + forMs;
  const ask = async () => {
    while (performance.now() < until) {
      const begunAtMs = performance.now();
      const status = await statusOf(url, agent, secret, 30_000);
      times.push(performance.now() - begunAtMs);
      statuses[status] = (statuses[status] ?? 0) + 1;
      await sleep(POLITE_PAUSE_MS);
    }
  };
  await Promise.all(Array.from({ length: POLITE_CLIENTS }, ask));
  times.sort((a, b) => a - b);
  const quantile = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? NaN;
  return { requests: times.length, p50Ms: quantile(0.5), p99Ms: quantile(0.99), statuses };
}

async function watchReady(served: Served, seen: Record<number, number>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    // Each on a connection of its own, as a load balancer asks.
    const status = await statusOf(`${served.url}/ready`, undefined, null, 10_000);
    seen[status] = (seen[status] ?? 0) + 1;
    await sleep(READY_EVERY_MS);
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
