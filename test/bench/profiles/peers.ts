/**
 * The daemon beside other gateways, as a user would run them: with their defaults, on all cores, which they share with load and provider. Every
 * contender gets the same workloads. nginx and Portkey's gateway take part if they are installed; others by `BENCH_PEER_1="NAME=COMMAND"` and so on
 * (peer-programs.ts).
 */
import { FORWARDER, startBaselines, startProvider, type Measurable } from '../baselines.js';
import { startDaemon } from '../daemon.js';
import { type Figure, median, type Row } from '../figures.js';
import { probe, type Target } from '../load.js';
import { memoryOfTreeMb } from '../machine.js';
import { startPeers } from '../peer-programs.js';
import { Failure } from '../processes.js';
import { CHAT, LONG_CHAT, MODELS } from '../requests.js';
import { compare, ratio, type RoundResult, type Rounds, rowsOf } from '../rounds.js';
import type { Bench, Report } from '../run.js';
import { UsageError } from '../usage-error.js';
import { readStreams, type Streamed } from './streams.js';

const DIRECT = 'direct';
const DAEMON = 'llmp';
const ALL_CORES = 'llmp, WORKERS=auto';

const CHATS = 'small chat';
const CAPPED = 'small chat, capped';
const HITS = 'hits';
const REFUSALS = 'refusals';
const ONE_BY_ONE = 'small chat, one connection';

const FAR_CAP = 1_000_000_000;
const CACHED = { 'cache-control': 'public, max-age=86400' };
// Well-formed, so that it is not refused for its form.
const UNKNOWN_TOKEN = { authorization: `Bearer sk-wt-${'0'.repeat(43)}` };

interface Workload {
  name: string;
  /** The target of this workload for a contender. */
  target: (of: Target) => Target;
  /** Only contenders that do this take part: those that have a cache, or refuse tokens. */
  isOptional?: boolean;
  /** With a cap. Only contenders that have one take part. */
  isCapped?: boolean;
  /** Only the daemon with and without workers takes part. */
  isOurs?: boolean;
  /** Otherwise as many as the options say. */
  connections?: number;
}

const WORKLOADS: readonly Workload[] = [
  { name: CHATS, target: (of) => of },
  { name: CAPPED, target: (of) => of, isCapped: true },
  { name: 'prompt of 64 KB', target: (of) => ({ ...of, asked: LONG_CHAT }) },
  {
    name: HITS,
    target: (of) => ({ ...of, headers: { ...of.headers, ...CACHED }, isHit: true }),
    isOptional: true,
  },
  {
    name: REFUSALS,
    target: (of) => ({ ...of, headers: UNKNOWN_TOKEN, refusal: { status: 401, part: '' } }),
    isOptional: true,
  },
  // Here nothing competes for the cores, as on a machine that has enough of them.
  { name: ONE_BY_ONE, target: (of) => of, isOurs: true, connections: 1 },
  { name: 'mixed', target: (of) => ({ ...of, asked: [CHAT, CHAT, CHAT, LONG_CHAT, CHAT, CHAT, MODELS] }) },
];

/** @throws {UsageError} without wrk. */
export async function peers(bench: Bench): Promise<Report> {
  if (bench.options.load !== 'wrk') throw new UsageError('peers needs wrk: autocannon limits the load');
  const provider = await startProvider(bench);
  const settings = { HTTP_CACHE_ENABLED: 'true', HTTP_CACHE_BACKEND: 'memory', HTTP_CACHE_DEFAULT_TTL: '86400' };
  const ours = async (name: string, more: Record<string, string>): Promise<Measurable> => {
    const service = await startDaemon(bench, provider.url, { ...settings, ...more });
    return {
      name,
      service,
      target: await service.targetWithToken(0),
      capped: await service.targetWithToken(FAR_CAP),
    };
  };
  const contenders: Measurable[] = [
    { name: DIRECT, service: provider, target: { url: provider.url, headers: {} } },
    ...(await startBaselines(bench, provider.url)).filter(({ service }) => service.name !== 'bare node:http'),
    ...(await startPeers(bench, provider.url)),
    await ours(DAEMON, {}),
    await ours(ALL_CORES, { WORKERS: 'auto' }),
  ];
  const idle = new Map(contenders.map(({ name, service }) => [name, memoryOfTreeMb(service.pid)]));

  const rows: Row[] = [];
  const figures: Figure[] = [];
  const measured = new Map<string, Rounds>();
  for (const workload of WORKLOADS) {
    const { connections = bench.options.connections } = workload;
    const alike = { ...bench, options: { ...bench.options, connections } };
    const rounds = await compare(alike, await participants(workload, contenders));
    measured.set(workload.name, rounds);
    rows.push(...rowsOfWorkload(workload.name, rounds));
    figures.push(...figuresOf(workload.name, rounds));
  }
  figures.push(...goalFigures(measured));
  rows.push(...(await streamRows(bench, contenders)));
  for (const { name, service } of contenders) {
    if (name === DIRECT) continue;
    figures.push({ what: `memory of ${name}, idle`, value: idle.get(name) ?? NaN, unit: 'MB' });
    figures.push({ what: '… after all workloads', value: memoryOfTreeMb(service.pid), unit: 'MB' });
  }
  return { rows, figures };
}

/** The contenders that can do this. @throws if one fails in a workload that is not optional. */
async function participants(
  { name, target, isOptional = false, isCapped = false, isOurs = false }: Workload,
  contenders: readonly Measurable[],
) {
  const all: Measurable[] = [];
  for (const contender of contenders) {
    if (isOurs && contender.name !== DAEMON && contender.name !== ALL_CORES) continue;
    const given = isCapped ? contender.capped : contender.target;
    if (given === undefined) continue;
    const wanted = target(given);
    try {
      await (wanted.isHit ? probeHit(wanted) : probe(wanted));
      all.push({ ...contender, target: wanted });
    } catch (error) {
      if (!isOptional || !(error instanceof Failure)) throw error;
      console.error(`${contender.name} does not take part in ${name}`);
    }
  }
  return all;
}

// A contender of several processes may have a cache in each.
const MOST_MISSES = 20;

async function probeHit(target: Target): Promise<void> {
  await probe({ ...target, isHit: false });
  for (let misses = 1; ; misses++) {
    try {
      await probe(target);
      return;
    } catch (error) {
      if (misses === MOST_MISSES) throw error;
    }
  }
}

function rowsOfWorkload(workload: string, rounds: Rounds): Row[] {
  return rowsOf(rounds).map((row) => ({
    workload,
    service: row.service ?? null,
    'requests/s': row['requests/s'] ?? null,
    'p50 ms': row['p50 ms'] ?? null,
    'p99 ms': row['p99 ms'] ?? null,
    'CPU µs/request': row['CPU µs/request'] ?? null,
  }));
}

/** The daemon against each other contender. */
function figuresOf(workload: string, rounds: Rounds): Figure[] {
  return [...rounds.keys()]
    .filter((name) => name !== DAEMON && name !== ALL_CORES)
    .flatMap((other) =>
      [DAEMON, ALL_CORES].map((one) => ({
        what: `${workload}: ${one} against ${other}`,
        value: ratio(rounds, one, other, ({ requestsPerS }) => requestsPerS),
        unit: '',
      })),
    );
}

const perS = ({ requestsPerS }: RoundResult) => requestsPerS;
const cpuUs = (round: RoundResult) => round.cpuUs;

/** What workers bring, and a hit against a forwarded request. With two cores, the load needs one of those that the workers would use. */
function goalFigures(measured: ReadonlyMap<string, Rounds>): Figure[] {
  const chats = measured.get(CHATS) ?? new Map<string, RoundResult[]>();
  const hits = measured.get(HITS) ?? new Map<string, RoundResult[]>();
  const refusals = measured.get(REFUSALS) ?? new Map<string, RoundResult[]>();
  const oneByOne = measured.get(ONE_BY_ONE) ?? new Map<string, RoundResult[]>();
  const forwarder = chats.get(FORWARDER) ?? [];
  const hitsBesideForwarder = new Map([...hits, [FORWARDER, forwarder]]);
  const workers = (rounds: Rounds, read: typeof cpuUs) => ratio(rounds, ALL_CORES, DAEMON, read);
  return [
    {
      what: 'CPU time of a chat, workers against one process',
      value: workers(chats, cpuUs),
      unit: '',
      goal: { atMost: 1.1 },
    },
    { what: '… at one connection', value: workers(oneByOne, cpuUs), unit: '', goal: { atMost: 1.1 } },
    { what: 'hits/s, workers against one process', value: workers(hits, perS), unit: '', goal: { atLeast: 1.7 } },
    { what: '… CPU time of a hit', value: workers(hits, cpuUs), unit: '' },
    {
      what: 'refusals/s, workers against one process',
      value: workers(refusals, perS),
      unit: '',
      goal: { atLeast: 1.7 },
    },
    { what: '… CPU time of a refusal', value: workers(refusals, cpuUs), unit: '' },
    {
      what: 'hits/s against chats/s of the bare forwarder',
      value: ratio(hitsBesideForwarder, DAEMON, FORWARDER, perS),
      unit: '',
      goal: { atLeast: 1.33 },
    },
  ];
}

/** The times are those of a piece on its way, and its number per second is given by the provider. */
async function streamRows(bench: Bench, contenders: readonly Measurable[]): Promise<Row[]> {
  const results = new Map<string, Streamed[]>(contenders.map(({ name }) => [name, []]));
  for (let round = 1; round <= bench.options.rounds; round++) {
    for (const contender of contenders) results.get(contender.name)?.push(await readStreams(bench, contender));
  }
  return [...results].map(([service, rounds]) => ({
    workload: `${bench.options.streams} streams`,
    service,
    'requests/s': null,
    'p50 ms': median(rounds.map(({ pieceMs }) => pieceMs.p50)),
    'p99 ms': median(rounds.map(({ pieceMs }) => pieceMs.p99)),
    'CPU µs/request': null,
  }));
}
