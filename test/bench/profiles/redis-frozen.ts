/**
 * Redis stands still under load (SIGSTOP), and goes on later: what the requests notice that would have asked it, for
 * their rate limits and for the cache. In slices of a second, so that the second in which the breaker opens stands alone.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CHAT, NEVER_KEPT } from '../asked.js';
import { startProvider } from '../baselines.js';
import { type Daemon, startDaemon } from '../daemon.js';
import { type Figure, median, type Row } from '../figures.js';
import { attempt, type Attempted, load, probe, type Target } from '../load.js';
import { cpuMs } from '../machine.js';
import { Failure } from '../processes.js';
import { type Redis, startRedis } from '../redis.js';
import type { Bench, Report } from '../run.js';

/** Seconds of each phase, for each of `--seconds`. */
const PHASES = { well: 3, frozen: 6, after: 3 };
type Phase = keyof typeof PHASES;

const MANY = '1000000000'; // More than any run sends.
const ASKS_REDIS = {
  IP_RATE_LIMIT: MANY,
  GLOBAL_RATE_LIMIT: MANY,
  HTTP_CACHE_ENABLED: 'true',
  HTTP_CACHE_BACKEND: 'redis',
};
const POLL_EVERY_MS = 50;
const BACK_WITHIN_MS = 60_000;

/** Half of the connections send chats, and half ask for what is looked up in the cache, in vain. */
interface Slice {
  phase: Phase;
  chats: Attempted;
  gets: Attempted;
  /** Processor time of the daemon; null where the system does not say. */
  usedMs: number | null;
}

/** @throws {Failure} without redis-server, and when Redis was not missed while it stood still. */
export async function redisFrozen(bench: Bench): Promise<Report> {
  const redis = await startRedis(bench);
  if (redis === null) throw new Failure('redis-frozen needs redis-server');
  const provider = await startProvider(bench);
  const daemon = await startDaemon(bench, provider.url, { ...ASKS_REDIS, REDIS_ADDR: redis.address });
  const target = await daemon.targetWithToken(0);
  for (const asked of [CHAT, NEVER_KEPT]) await probe({ ...target, asked });
  if (bench.options.warmUpSeconds > 0) {
    await load(bench, target, { ...bench.options, seconds: bench.options.warmUpSeconds });
  }
  const over = new AbortController();
  const longestMs = longestOf(target, over.signal);
  const run = runThrough(bench, { redis, daemon, target }).finally(() => {
    over.abort();
  });
  const [{ slices, backAfterS }, longest] = await Promise.all([run, longestMs]);
  return { rows: slices.map(rowOf), figures: figuresOf(slices, backAfterS, longest) };
}

interface Scene {
  redis: Redis;
  daemon: Daemon;
  target: Target;
}

async function runThrough(bench: Bench, scene: Scene): Promise<{ slices: Slice[]; backAfterS: number }> {
  const { redis, daemon } = scene;
  const well = await slicesOf(bench, scene, 'well');
  redis.freeze();
  const frozen = await slicesOf(bench, scene, 'frozen');
  if (!(await isDegraded(daemon))) throw new Failure('void: the daemon did not miss Redis while it stood still');
  redis.resume();
  const late = () => `Redis goes on, and is not used again after ${BACK_WITHIN_MS} ms`;
  const [backAfterS, after] = await Promise.all([
    bench.processes.whileAllLive(wholeAgain(daemon), BACK_WITHIN_MS, late),
    slicesOf(bench, scene, 'after'),
  ]);
  return { slices: [...well, ...frozen, ...after], backAfterS };
}

/** One request after the other: a load generator forgets those that are not answered when its second is over. */
async function longestOf(target: Target, until: AbortSignal): Promise<number> {
  let longestMs = 0;
  while (!until.aborted) {
    for (const asked of [CHAT, NEVER_KEPT]) {
      const begunMs = performance.now();
      await probe({ ...target, asked });
      longestMs = Math.max(longestMs, performance.now() - begunMs);
    }
    await sleep(POLL_EVERY_MS);
  }
  return longestMs;
}

async function slicesOf(bench: Bench, { daemon, target }: Scene, phase: Phase): Promise<Slice[]> {
  const slices: Slice[] = [];
  const options = { connections: Math.ceil(bench.options.connections / 2), seconds: 1 };
  for (let second = 1; second <= PHASES[phase] * bench.options.seconds; second++) {
    const before = cpuMs(daemon.pid);
    const [chats, gets] = await Promise.all([
      attempt(bench, { ...target, asked: CHAT }, options),
      attempt(bench, { ...target, asked: NEVER_KEPT }, options),
    ]);
    const after = cpuMs(daemon.pid);
    const usedMs = before === null || after === null ? null : after - before;
    slices.push({ phase, chats, gets, usedMs });
    console.error(
      `${phase}, second ${second}: ${chats.requests + gets.requests} requests, ${failuresIn({ chats, gets })} failed`,
    );
  }
  return slices;
}

/** @returns after how many seconds. */
async function wholeAgain(daemon: Daemon): Promise<number> {
  const begunMs = performance.now();
  while (await isDegraded(daemon)) await sleep(POLL_EVERY_MS);
  return (performance.now() - begunMs) / 1_000;
}

async function isDegraded({ url }: Daemon): Promise<boolean> {
  const response = await fetch(`${url}/ready`);
  const { degraded } = (await response.json()) as { degraded: string[] };
  return degraded.length > 0;
}

const failuresIn = ({ chats, gets }: Pick<Slice, 'chats' | 'gets'>) => chats.failures + gets.failures;

const rowOf = (slice: Slice, second: number): Row => ({
  second: second + 1,
  Redis: slice.phase,
  'chats/s': slice.chats.requests / slice.chats.seconds,
  'chat p99 ms': slice.chats.p99Ms,
  'GETs/s': slice.gets.requests / slice.gets.seconds,
  'GET p99 ms': slice.gets.p99Ms,
  'CPU µs/request': slice.usedMs && (slice.usedMs * 1_000) / (slice.chats.requests + slice.gets.requests),
  failed: failuresIn(slice),
});

function figuresOf(slices: readonly Slice[], backAfterS: number, longestMs: number): Figure[] {
  const of = (phase: Phase) => slices.filter((slice) => slice.phase === phase);
  const againstWell = (read: (slice: Slice) => number) =>
    median(of('frozen').slice(1).map(read)) / median(of('well').map(read));
  return [
    {
      what: 'failed requests',
      value: slices.reduce((sum, slice) => sum + failuresIn(slice), 0),
      unit: '',
      goal: { atMost: 0 },
    },
    {
      what: 'p99 of a chat, frozen (after the first second) against well',
      value: againstWell(({ chats }) => chats.p99Ms),
      unit: '',
      goal: { atMost: 1.2 },
    },
    {
      what: '… of a GET that is looked up',
      value: againstWell(({ gets }) => gets.p99Ms),
      unit: '',
      goal: { atMost: 1.2 },
    },
    { what: 'longest of those asked one by one all the while', value: longestMs, unit: 'ms' },
    { what: 'shared again by itself, after Redis goes on', value: backAfterS, unit: 's', goal: { atMost: 10 } },
  ];
}
