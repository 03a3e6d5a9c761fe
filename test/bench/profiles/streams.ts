/** Many event streams at a time through one process, compared with direct streams from the provider, in turn. */
import { join } from 'node:path';
import { type Measurable, startForwarder, startProvider } from '../baselines.js';
import { startDaemon } from '../daemon.js';
import { type Figure, median, medianOrNull, type Row } from '../figures.js';
import { cpuMs, rssMb } from '../machine.js';
import type { Bench, Report } from '../run.js';
import type { StreamOrder, StreamResult } from '../stream-client.js';

const DIRECT = 'direct';
const DAEMON = 'llmp';
// Four pieces a second of each stream. With a thousand streams, the one core that provider and client share still has time left; otherwise
// no delay could be attributed.
const EVERY_MS = 250;
const SPREAD_MS = 1_000;
const STALL_MS = 5_000;
const END_WITHIN_MS = 30_000; // After the time the streams take without a fault.

export interface Streamed extends StreamResult {
  /** CPU time of the measured process per piece; null if the system does not report it. */
  cpuUsPerPiece: number | null;
}

export async function streams(bench: Bench): Promise<Report> {
  const provider = await startProvider(bench);
  const forwarder = await startForwarder(bench, provider.url);
  const daemon = await startDaemon(bench, provider.url);
  const services: Measurable[] = [
    { name: DIRECT, service: provider, target: { url: provider.url, headers: {} } },
    forwarder,
    { name: DAEMON, service: daemon, target: await daemon.targetWithToken(0) },
  ];
  const results = new Map<string, Streamed[]>(services.map(({ name }) => [name, []]));
  // Round 0 is only a warm-up.
  for (let round = 0; round <= bench.options.rounds; round++) {
    for (const service of services) {
      const result = await readStreams(bench, service);
      if (round > 0) results.get(service.name)?.push(result);
      console.error(`round ${round} of ${bench.options.rounds}, ${service.name}: ${result.complete} streams complete`);
    }
  }
  const figures = figuresOf(bench, results.get(DIRECT) ?? [], results.get(DAEMON) ?? []);
  figures.push({ what: 'RSS, highest', value: rssMb(daemon.pid, 'highest'), unit: 'MB', goal: { atMost: 300 } });
  return { rows: [...results].map(([name, rounds]) => rowOf(name, rounds)), figures };
}

export async function readStreams(bench: Bench, { service, target }: Measurable): Promise<Streamed> {
  const { url, headers } = target;
  const pieces = Math.ceil((bench.options.seconds * 1_000) / EVERY_MS);
  const order: StreamOrder = {
    url: `${url}/v1/chat/completions?pieces=${pieces}&every_ms=${EVERY_MS}`,
    headers,
    streams: bench.options.streams,
    spreadMs: SPREAD_MS,
    pieces,
    stallMs: STALL_MS,
  };
  const client = {
    name: 'stream client',
    command: process.execPath,
    args: [join(import.meta.dirname, '../stream-client.js'), JSON.stringify(order)],
    cores: bench.cores.others,
  };
  const before = cpuMs(service.pid);
  const output = await bench.processes.run(client, SPREAD_MS + pieces * EVERY_MS + END_WITHIN_MS);
  const after = cpuMs(service.pid);
  const result = JSON.parse(output) as StreamResult;
  const cpuUs = before === null || after === null ? null : (after - before) * 1_000;
  return { ...result, cpuUsPerPiece: cpuUs === null ? null : cpuUs / (order.streams * pieces) };
}

function rowOf(name: string, rounds: readonly Streamed[]): Row {
  const of = (read: (result: StreamResult) => number) => median(rounds.map(read));
  return {
    streams: name,
    'first byte p50 ms': of(({ firstByteMs }) => firstByteMs.p50),
    'first byte p99 ms': of(({ firstByteMs }) => firstByteMs.p99),
    'piece p50 ms': of(({ pieceMs }) => pieceMs.p50),
    'piece p99 ms': of(({ pieceMs }) => pieceMs.p99),
    'CPU µs/piece': medianOrNull(rounds.map(({ cpuUsPerPiece }) => cpuUsPerPiece)),
    'longest silence ms': Math.max(...rounds.map(({ longestSilenceMs }) => longestSilenceMs)),
  };
}

function figuresOf({ options }: Bench, direct: readonly Streamed[], through: readonly Streamed[]): Figure[] {
  const fewest = (read: (result: StreamResult) => number) => Math.min(...through.map(read));
  /** The median over the rounds of what is added in each. */
  const added = (read: (result: StreamResult) => number) =>
    median(through.map((result, round) => read(result) - read(direct[round] ?? result)));
  return [
    {
      what: 'streams at the same time',
      value: fewest(({ together }) => together),
      unit: '',
      goal: { atLeast: options.streams },
    },
    {
      what: 'complete',
      value: fewest(({ complete }) => complete),
      unit: '',
      goal: { atLeast: options.streams },
    },
    {
      what: `stalled (silent for ${STALL_MS / 1_000} s)`,
      value: Math.max(...through.map(({ stalled }) => stalled)),
      unit: '',
      goal: { atMost: 0 },
    },
    { what: 'added time to first byte, p50', value: added(({ firstByteMs }) => firstByteMs.p50), unit: 'ms' },
    { what: '… p99', value: added(({ firstByteMs }) => firstByteMs.p99), unit: 'ms', goal: { atMost: 2 } },
    { what: 'added delay of a piece, p50', value: added(({ pieceMs }) => pieceMs.p50), unit: 'ms' },
    { what: '… p99', value: added(({ pieceMs }) => pieceMs.p99), unit: 'ms', goal: { atMost: 0.2 } },
  ];
}
