/** One connection, one request at a time: what the daemon adds to the provider's response time. */
import { join } from 'node:path';
import { type Measurable, startForwarder, startProvider } from '../baselines.js';
import { startDaemon } from '../daemon.js';
import { type Figure, median, type Row } from '../figures.js';
import { probe } from '../load.js';
import { CHAT } from '../requests.js';
import type { Bench, Report } from '../run.js';
import type { SingleOrder, SingleResult } from '../single-client.js';

const DIRECT = 'direct';
const DAEMON = 'llmp';
const END_WITHIN_MS = 15_000; // After the last second of load.

type Rounds = ReadonlyMap<string, readonly SingleResult[]>;

export async function latency(bench: Bench): Promise<Report> {
  const provider = await startProvider(bench);
  const forwarder = await startForwarder(bench, provider.url);
  const daemon = await startDaemon(bench, provider.url);
  const rounds = await compare(bench, [
    { name: DIRECT, service: provider, target: { url: provider.url, headers: {} } },
    forwarder,
    { name: DAEMON, service: daemon, target: await daemon.targetWithToken(0) },
  ]);
  return {
    rows: [...rounds].map(([service, results]) => rowOf(service, results)),
    figures: [...added(rounds, forwarder.name, null), ...added(rounds, DAEMON, { p50: 0.25, p99: 1 })],
  };
}

async function compare(bench: Bench, services: readonly Measurable[]): Promise<Rounds> {
  const { rounds, seconds, warmUpSeconds } = bench.options;
  const results = new Map<string, SingleResult[]>(services.map(({ name }) => [name, []]));
  for (const service of services) {
    await probe(service.target);
    if (warmUpSeconds > 0) await measure(bench, service, warmUpSeconds);
  }
  for (let round = 1; round <= rounds; round++) {
    for (const service of services) {
      const result = await measure(bench, service, seconds);
      results.get(service.name)?.push(result);
      console.error(`round ${round} of ${rounds}, ${service.name}: p99 ${result.p99Ms.toFixed(2)} ms`);
    }
  }
  return results;
}

async function measure(bench: Bench, { target }: Measurable, seconds: number): Promise<SingleResult> {
  const { method, path, body } = CHAT;
  const headers = { 'content-type': 'application/json', ...target.headers };
  const order: SingleOrder = { url: target.url, method, path, headers, body: body ?? '', seconds };
  const client = {
    name: 'client',
    command: process.execPath,
    args: [join(import.meta.dirname, '../single-client.js'), JSON.stringify(order)],
    cores: bench.cores.others,
  };
  return JSON.parse(await bench.processes.run(client, seconds * 1_000 + END_WITHIN_MS)) as SingleResult;
}

function rowOf(service: string, results: readonly SingleResult[]): Row {
  const of = (read: (result: SingleResult) => number) => median(results.map(read));
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
  const of = (read: (result: SingleResult) => number) =>
    median((rounds.get(name) ?? []).map((result, round) => read(result) - read(direct[round] ?? result)));
  const figures = [
    { what: `added by ${name}, p50`, value: of(({ p50Ms }) => p50Ms), unit: 'ms', atMost: goalMs?.p50 },
    { what: '… p99', value: of(({ p99Ms }) => p99Ms), unit: 'ms', atMost: goalMs?.p99 },
  ];
  return figures.map(({ atMost, ...figure }) => (atMost === undefined ? figure : { ...figure, goal: { atMost } }));
}
