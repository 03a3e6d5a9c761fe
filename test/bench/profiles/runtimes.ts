/**
 * The daemon and the bare forwarder on several releases of Node.js, in turn: `--node PATH` for each, the one to compare with first.
 * `npx -p node@24 -c 'node -p process.execPath'` prints the path of a release.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '../../support/daemon.js';
import { FORWARDER, type Measurable, startForwarder, startProvider } from '../baselines.js';
import { startDaemon } from '../daemon.js';
import { type Figure, median, type Row } from '../figures.js';
import { load, probe } from '../load.js';
import { memoryOfTreeMb } from '../machine.js';
import { compare, ratio, type RoundResult, type Rounds, rowsOf } from '../rounds.js';
import type { Bench, Report } from '../run.js';
import { startOnce } from './startup.js';

const DAEMON = 'llmp';
const CACHE = { HTTP_CACHE_ENABLED: 'true', HTTP_CACHE_BACKEND: 'memory', HTTP_CACHE_DEFAULT_TTL: '86400' };
const CACHED = { 'cache-control': 'public, max-age=86400' };

interface Runtime {
  /** Such as `24.21.0`. */
  version: string;
  bench: Bench;
  forwarder: Measurable;
  daemon: Measurable;
  idleMb: number;
}

export async function runtimes(bench: Bench): Promise<Report> {
  const provider = await startProvider(bench);
  const all: Runtime[] = [];
  for (const node of bench.options.nodes) all.push(await startRuntime({ ...bench, node }, provider.url));
  await sleep(bench.options.settleSeconds * 1_000);
  for (const runtime of all) runtime.idleMb = memoryOfTreeMb(runtime.daemon.service.pid);

  const chats = await compare(
    bench,
    all.flatMap(({ forwarder, daemon }) => [forwarder, daemon]),
  );
  const cached: Measurable[] = [];
  for (const { daemon } of all) cached.push(await withStoredChat(daemon));
  const hits = await compare(bench, cached);
  const afterLoad = all.map(({ daemon }) => memoryOfTreeMb(daemon.service.pid));
  for (const { forwarder, daemon } of all) {
    await forwarder.service.stop();
    await daemon.service.stop();
  }
  const workers: number[] = [];
  for (const runtime of all) workers.push(await memoryOfWorkers(runtime, provider.url));
  const starts = await startsOf(all, provider.url);
  return {
    rows: [...rowsOfWorkload('chats', chats), ...rowsOfWorkload('hits', hits)],
    figures: all.flatMap((runtime, index) => [
      ...figuresOf(runtime, all[0], chats, hits),
      { what: '… memory, idle', value: runtime.idleMb, unit: 'MB', goal: { atMost: 110 } },
      { what: '… memory after load', value: afterLoad[index] ?? NaN, unit: 'MB', goal: { atMost: 170 } },
      { what: '… two workers after load', value: workers[index] ?? NaN, unit: 'MB', goal: { atMost: 280 } },
      { what: '… start to ready', value: starts[index] ?? NaN, unit: 's', goal: { atMost: 0.8 } },
    ]),
  };
}

const on = (name: string, version: string) => `${name}, Node ${version}`;

async function startRuntime(bench: Bench, upstreamUrl: string): Promise<Runtime> {
  const version = execFileSync(bench.node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim();
  const forwarder = await startForwarder(bench, upstreamUrl);
  const service = await startDaemon(bench, upstreamUrl, CACHE);
  return {
    version,
    bench,
    forwarder: { ...forwarder, name: on(FORWARDER, version) },
    daemon: { name: on(DAEMON, version), service, target: await service.targetWithToken(0) },
    idleMb: NaN,
  };
}

/** The same chat, from the cache of the daemon. */
async function withStoredChat(daemon: Measurable): Promise<Measurable> {
  const target = { ...daemon.target, headers: { ...daemon.target.headers, ...CACHED } };
  await probe(target);
  return { ...daemon, target: { ...target, isHit: true } };
}

const rowsOfWorkload = (workload: string, rounds: Rounds): Row[] => rowsOf(rounds).map((row) => ({ workload, ...row }));

const perS = ({ requestsPerS }: RoundResult) => requestsPerS;
const p99 = ({ p99Ms }: RoundResult) => p99Ms;
const cpu = ({ cpuUs }: RoundResult) => cpuUs;

function figuresOf(runtime: Runtime, first: Runtime | undefined, chats: Rounds, hits: Rounds): Figure[] {
  const { daemon, forwarder, version } = runtime;
  const against = (rounds: Rounds, other: Measurable) => (read: (result: RoundResult) => number | null) =>
    ratio(rounds, daemon.name, other.name, read);
  const beside = against(chats, forwarder);
  const figures: Figure[] = [
    { what: `Node ${version}: chats/s against the forwarder's`, value: beside(perS), unit: '', goal: { atLeast: 0.7 } },
    { what: '… p99', value: beside(p99), unit: '', goal: { atMost: 1.5 } },
  ];
  if (first === undefined || first === runtime) return figures;
  for (const [name, rounds] of [['chats', chats] as const, ['hits', hits] as const]) {
    const ofFirst = against(rounds, first.daemon);
    figures.push(
      { what: `… ${name}/s against Node ${first.version}`, value: ofFirst(perS), unit: '', goal: { atLeast: 1 } },
      { what: `… p99 of ${name}`, value: ofFirst(p99), unit: '', goal: { atMost: 1 } },
      { what: `… CPU time of ${name}`, value: ofFirst(cpu), unit: '' },
    );
  }
  return figures;
}

/** The memory of a primary and two workers after the same load. */
async function memoryOfWorkers({ bench }: Runtime, upstreamUrl: string): Promise<number> {
  const daemon = await startDaemon(bench, upstreamUrl, { ...CACHE, WORKERS: '2' });
  const target = await daemon.targetWithToken(0);
  const { rounds, seconds } = bench.options;
  await load(bench, target, { ...bench.options, seconds: rounds * seconds });
  const mb = memoryOfTreeMb(daemon.pid);
  await daemon.stop();
  return mb;
}

/** The median time from the start of each until `/ready` returns 200, with a database that exists, in seconds. */
async function startsOf(all: readonly Runtime[], upstreamUrl: string): Promise<number[]> {
  const seconds = all.map((): number[] => []);
  const paths = all.map(() => join(temporaryFolder(), 'llmp.db'));
  for (let round = 0; round <= all[0]!.bench.options.rounds; round++) {
    for (const [index, { bench }] of all.entries()) {
      const start = await startOnce(bench, upstreamUrl, paths[index]!);
      if (round > 0) seconds[index]!.push(start.seconds); // The first one migrates the database.
    }
  }
  return seconds.map((each) => median(each));
}
