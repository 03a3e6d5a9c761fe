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
  const slices = await slicesOf(bench, target, 'well');
  redis.freeze();
  let backAfterS: Promise<number>;
  try {
    slices.push(...(await slicesOf(bench, target, 'frozen')));
    if (!(await isDegraded(daemon))) throw new Failure('void: the daemon did not miss Redis while it stood still');
  } finally {
    backAfterS = resume(redis, daemon);
    backAfterS.catch(() => undefined); // The load is waited for first.
  }
  slices.push(...(await slicesOf(bench, target, 'after')));
  return {
    rows: slices.map(rowOf),
    figures: figuresOf(
      slices,
      await bench.processes.whileAllLive(backAfterS, BACK_WITHIN_MS, () => 'Redis goes on, and is not used again'),
    ),
  };
}

async function slicesOf(bench: Bench, target: Target, phase: Phase): Promise<Slice[]> {
  const slices: Slice[] = [];
  const options = { connections: Math.ceil(bench.options.connections / 2), seconds: 1 };
  for (let second = 1; second <= PHASES[phase] * bench.options.seconds; second++) {
    const [chats, gets] = await Promise.all([
      attempt(bench, { ...target, asked: CHAT }, options),
      attempt(bench, { ...target, asked: NEVER_KEPT }, options),
    ]);
    slices.push({ phase, chats, gets });
    console.error(
      `${phase}, second ${second}: ${chats.requests + gets.requests} requests, ${failuresIn({ chats, gets })} failed`,
    );
  }
  return slices;
}

/** @returns how many seconds later the daemon is whole again. */
async function resume(redis: Redis, daemon: Daemon): Promise<number> {
  redis.resume();
  const resumedAtMs = performance.now();
  while (await isDegraded(daemon)) await sleep(POLL_EVERY_MS);
  return (performance.now() - resumedAtMs) / 1_000;
}

async function isDegraded({ url }: Daemon): Promise<boolean> {
  const response = await fetch(`${url}/ready`);
  const { degraded } = (await response.json()) as { degraded: string[] };
  return degraded.length > 0;
}

const failuresIn = ({ chats, gets }: Omit<Slice, 'phase'>) => chats.failures + gets.failures;

const rowOf = (slice: Slice, second: number): Row => ({
  second: second + 1,
  Redis: slice.phase,
  'chats/s': slice.chats.requests / slice.chats.seconds,
  'chat p99 ms': slice.chats.p99Ms,
  'GETs/s': slice.gets.requests / slice.gets.seconds,
  'GET p99 ms': slice.gets.p99Ms,
  failed: failuresIn(slice),
});

function figuresOf(slices: readonly Slice[], backAfterS: number): Figure[] {
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
    { what: 'shared again by itself, after Redis goes on', value: backAfterS, unit: 's', goal: { atMost: 10 } },
  ];
}
