/** One connection, one request at a time: what the daemon adds to the provider's response time. */
import { startForwarder, startProvider } from '../baselines.js';
import { startDaemon } from '../daemon.js';
import { type Figure, median } from '../figures.js';
import { UsageError } from '../usage-error.js';
import { compare, type RoundResult, type Rounds, rowsOf } from '../rounds.js';
import type { Bench, Report } from '../run.js';

const DIRECT = 'direct';
const DAEMON = 'llmp';

/** @throws {UsageError} without wrk. */
export async function latency(bench: Bench): Promise<Report> {
  if (bench.options.load !== 'wrk')
    throw new UsageError("latency needs wrk: autocannon's times are whole milliseconds");
  const provider = await startProvider(bench);
  const forwarder = await startForwarder(bench, provider.url);
  const daemon = await startDaemon(bench, provider.url);
  const rounds = await compare({ ...bench, options: { ...bench.options, connections: 1 } }, [
    { name: DIRECT, service: provider, target: { url: provider.url, headers: {} } },
    forwarder,
    { name: DAEMON, service: daemon, target: await daemon.targetWithToken(0) },
  ]);
  return {
    rows: rowsOf(rounds),
    figures: [...added(rounds, forwarder.name, null), ...added(rounds, DAEMON, { p50: 0.25, p99: 1 })],
  };
}

/** The median over the rounds of what a service adds in each. */
function added(rounds: Rounds, name: string, goalMs: { p50: number; p99: number } | null): Figure[] {
  const direct = rounds.get(DIRECT) ?? [];
  const of = (read: (measured: RoundResult) => number) =>
    median((rounds.get(name) ?? []).map((measured, round) => read(measured) - read(direct[round] ?? measured)));
  const figures = [
    { what: `added by ${name}, p50`, value: of(({ p50Ms }) => p50Ms), unit: 'ms', atMost: goalMs?.p50 },
    { what: '… p99', value: of(({ p99Ms }) => p99Ms), unit: 'ms', atMost: goalMs?.p99 },
  ];
  return figures.map(({ atMost, ...figure }) => (atMost === undefined ? figure : { ...figure, goal: { atMost } }));
}
