/**
 * Redis is frozen under load (SIGSTOP) and continues later: the effect on requests that need it, for their rate limits and for the cache.
 * Measured in slices of a second, so that the second in which the circuit breaker opens is separate.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CHAT, UNCACHED } from '../requests.js';
import { startProvider } from '../baselines.js';
import { type Daemon, startDaemon } from '../daemon.js';
import { type Figure, median, type Row } from '../figures.js';
import { attempt, type AttemptResult, load, probe, type Target } from '../load.js';
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

/** Half of the connections send chats, and half send requests that miss the cache. */
interface Slice {
  phase: Phase;
  chats: AttemptResult;
  gets: AttemptResult;
  /** CPU time of the daemon; null if the system does not report it. */
  usedMs: number | null;
}

/** @throws {Failure} without redis-server, and if the daemon did not notice that Redis was frozen. */
export async function redisFrozen(bench: Bench): Promise<Report> {
  const redis = await startRedis(bench);
  if (redis === null) throw new Failure('redis-frozen needs redis-server');
  const provider = await startProvider(bench);
  const daemon = await startDaemon(bench, provider.url, { ...ASKS_REDIS, REDIS_ADDR: redis.address });
  const target = await daemon.targetWithToken(0);
  for (const asked of [CHAT, UNCACHED]) await probe({ ...target, asked });
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
  if (!(await isDegraded(daemon))) throw new Failure('void: the daemon did not notice that Redis was frozen');
  redis.resume();
  const late = () => `Redis continues and is not used again after ${BACK_WITHIN_MS} ms`;
  const [backAfterS, after] = await Promise.all([
    bench.processes.whileAllLive(wholeAgain(daemon), BACK_WITHIN_MS, late),
    slicesOf(bench, scene, 'after'),
  ]);
  return { slices: [...well, ...frozen, ...after], backAfterS };
}

/** Sequential requests: a load generator drops those without a response when its second has passed. */
async function longestOf(target: Target, until: AbortSignal): Promise<number> {
  let longestMs = 0;
  while (!until.aborted) {
    for (const asked of [CHAT, UNCACHED]) {
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
      attempt(bench, { ...target, asked: UNCACHED }, options),
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
      what: 'p99 of a chat, Redis frozen (after the first second) against normal',
      value: againstWell(({ chats }) => chats.p99Ms),
      unit: '',
      goal: { atMost: 1.2 },
    },
    {
      what: '… of a GET that misses the cache',
      value: againstWell(({ gets }) => gets.p99Ms),
      unit: '',
      goal: { atMost: 1.2 },
    },
    { what: 'longest of the sequential requests meanwhile', value: longestMs, unit: 'ms' },
    { what: 'Redis used again after it continues', value: backAfterS, unit: 's', goal: { atMost: 10 } },
  ];
}
