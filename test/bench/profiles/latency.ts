/**
 * Times of requests, each measured: on one connection, what the daemon adds to the provider's response time; on several, how its tail
 * compares with the forwarder's.
 */
import { join } from 'node:path';
import { type Measurable, startForwarder, startProvider } from '../baselines.js';
import { startDaemon } from '../daemon.js';
import { type Figure, median, type Row } from '../figures.js';
import { probe } from '../load.js';
import { stolenMs } from '../machine.js';
import { CHAT } from '../requests.js';
import type { Bench, Report } from '../run.js';
import type { ExactOrder, ExactResult } from '../exact-client.js';

const DIRECT = 'direct';
const DAEMON = 'llmp';
const END_WITHIN_MS = 15_000; // After the last second of load.
const UNRECORDED_SECONDS = 1;
// Of one core. With a hundredth, one request in a hundred may be late for it.
const MOST_STOLEN = 0.004;
const MOST_ATTEMPTS = 6;

type Rounds = ReadonlyMap<string, readonly ExactResult[]>;

export async function latency(bench: Bench): Promise<Report> {
  const provider = await startProvider(bench);
  const forwarder = await startForwarder(bench, provider.url);
  const daemon = await startDaemon(bench, provider.url);
  const services = [
    { name: DIRECT, service: provider, target: { url: provider.url, headers: {} } },
    forwarder,
    { name: DAEMON, service: daemon, target: await daemon.targetWithToken(0) },
  ];
  const { connections } = bench.options;
  const alone = await compare(bench, services, 1);
  const together = await compare(bench, services, connections);
  const tail = (name: string) => (together.get(name) ?? []).map(({ p99Ms }) => p99Ms);
  const forwarders = tail(forwarder.name);
  return {
    rows: [
      ...[...alone].map(([service, results]) => rowOf(`${service}, 1 connection`, results)),
      ...[...together].map(([service, results]) => rowOf(`${service}, ${connections} connections`, results)),
    ],
    figures: [
      ...added(alone, forwarder.name, null),
      ...added(alone, DAEMON, { p50: 0.25, p99: 1 }),
      {
        what: `p99 on ${connections} connections against the forwarder's`,
        value: median(tail(DAEMON).map((ms, round) => ms / (forwarders[round] ?? NaN))),
        unit: '',
        goal: { atMost: 1.5 },
      },
    ],
  };
}

async function compare(bench: Bench, services: readonly Measurable[], connections: number): Promise<Rounds> {
  const { rounds, seconds, warmUpSeconds } = bench.options;
  const results = new Map<string, ExactResult[]>(services.map(({ name }) => [name, []]));
  for (const service of services) {
    await probe(service.target);
    if (warmUpSeconds > 0) await measure(bench, service, connections, warmUpSeconds);
  }
  for (let round = 1; round <= rounds; round++) {
    for (const service of services) {
      const result = await undisturbed(() => measure(bench, service, connections, seconds), seconds);
      results.get(service.name)?.push(result);
      console.error(`round ${round} of ${rounds}, ${service.name}, ${connections}: p99 ${result.p99Ms.toFixed(2)} ms`);
    }
  }
  return results;
}

/** Measures again while the host of this virtual machine takes much of the time. */
async function undisturbed(measureOnce: () => Promise<ExactResult>, seconds: number): Promise<ExactResult> {
  for (let attempt = 1; ; attempt++) {
    const before = stolenMs();
    const result = await measureOnce();
    const stolen = (stolenMs() - before) / ((seconds + UNRECORDED_SECONDS) * 1_000);
    if (stolen <= MOST_STOLEN || attempt === MOST_ATTEMPTS) return result;
    console.error(`${(stolen * 100).toFixed(1)} % of the time was stolen: measuring again`);
  }
}

async function measure(
  bench: Bench,
  { target }: Measurable,
  connections: number,
  seconds: number,
): Promise<ExactResult> {
  const { method, path, body } = CHAT;
  const headers = { 'content-type': 'application/json', ...target.headers };
  const order: ExactOrder = {
    url: target.url,
    method,
    path,
    headers,
    body: body ?? '',
    connections,
    seconds,
    unrecordedSeconds: UNRECORDED_SECONDS,
  };
  const client = {
    name: 'client',
    command: process.execPath,
    args: [join(import.meta.dirname, '../exact-client.js'), JSON.stringify(order)],
    cores: bench.cores.others,
  };
  return JSON.parse(
    await bench.processes.run(client, (seconds + UNRECORDED_SECONDS) * 1_000 + END_WITHIN_MS),
  ) as ExactResult;
}

function rowOf(service: string, results: readonly ExactResult[]): Row {
  const of = (read: (result: ExactResult) => number) => median(results.map(read));
  return {
    service,
    'requests/s': of(({ requests, seconds }) => requests / seconds),
    'p50 ms': of(({ p50Ms }) => p50Ms),
    'p99 ms': of(({ p99Ms }) => p99Ms),
    'p99.9 ms': of(({ p999Ms }) => p999Ms),
    'longest ms': of(({ longestMs }) => longestMs),
  };
}

/** The median over the rounds of what a service adds in each. */
function added(rounds: Rounds, name: string, goalMs: { p50: number; p99: number } | null): Figure[] {
  const direct = rounds.get(DIRECT) ?? [];
  const of = (read: (result: ExactResult) => number) =>
    median((rounds.get(name) ?? []).map((result, round) => read(result) - read(direct[round] ?? result)));
  const figures = [
    { what: `added by ${name}, p50`, value: of(({ p50Ms }) => p50Ms), unit: 'ms', atMost: goalMs?.p50 },
    { what: '… p99', value: of(({ p99Ms }) => p99Ms), unit: 'ms', atMost: goalMs?.p99 },
  ];
  return figures.map(({ atMost, ...figure }) => (atMost === undefined ? figure : { ...figure, goal: { atMost } }));
}
