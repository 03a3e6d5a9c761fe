/**
 * A cached response compared with what it saves: with a server that does nothing else, and with a request to the provider. Also what a
 * cache costs requests that do not use it.
 */
import { MODELS } from '../requests.js';
import { BARE_SERVER, type Measurable, startBareServer, startProvider } from '../baselines.js';
import { startDaemon } from '../daemon.js';
import type { Figure } from '../figures.js';
import { probe, type Target } from '../load.js';
import { startRedis } from '../redis.js';
import { compare, idleWarning, ratio, type Rounds, rowsOf } from '../rounds.js';
import type { Bench, Report } from '../run.js';

const FROM_MEMORY = 'GET, cached in memory';
const FROM_REDIS = 'GET, cached in Redis';
const UNCACHED = 'GET, forwarded, cache off';
const CHAT_BESIDE_CACHE = 'chat, cache on, not opted in';
const CHAT_ALONE = 'chat, cache off';
// Longer than any run: no round has a miss.
const KEPT = { HTTP_CACHE_ENABLED: 'true', HTTP_CACHE_DEFAULT_TTL: '86400' };

export async function cache(bench: Bench): Promise<Report> {
  const provider = await startProvider(bench);
  const bare = await startBareServer(bench);
  const off = await startDaemon(bench, provider.url);
  const settings = { ...KEPT, HTTP_CACHE_BACKEND: 'memory' };
  const inMemory = await startDaemon(bench, provider.url, settings);
  // A separate daemon, which caches something too: the code that V8 optimised for hits must not affect this measurement.
  const forChats = await startDaemon(bench, provider.url, settings);
  const chatsOff = await startDaemon(bench, provider.url);
  const fromRedis = await startSharing(bench, provider.url);
  const rounds = await compare(bench, [
    { ...bare, target: { ...bare.target, asked: MODELS } },
    await keeping({ name: FROM_MEMORY, service: inMemory, target: await inMemory.targetWithToken(0) }),
    ...(fromRedis ? [await keeping(fromRedis)] : []),
    { name: UNCACHED, service: off, target: { ...(await off.targetWithToken(0)), asked: MODELS } },
    { name: CHAT_BESIDE_CACHE, service: forChats, target: await keepingModels(await forChats.targetWithToken(0)) },
    { name: CHAT_ALONE, service: chatsOff, target: await chatsOff.targetWithToken(0) },
  ]);
  return { rows: rowsOf(rounds), figures: figuresOf(rounds), warning: idleWarning(rounds, ...rounds.keys()) };
}

async function startSharing(bench: Bench, upstreamUrl: string): Promise<Measurable | null> {
  const redis = await startRedis(bench);
  if (redis === null) {
    console.error('no redis-server here: responses cached in Redis are not measured');
    return null;
  }
  const settings = { ...KEPT, HTTP_CACHE_BACKEND: 'redis', REDIS_ADDR: redis.address };
  const service = await startDaemon(bench, upstreamUrl, settings);
  return { name: FROM_REDIS, service, target: await service.targetWithToken(0) };
}

/** Checks that every measured response is a hit. */
async function keeping(measurable: Measurable): Promise<Measurable> {
  return { ...measurable, target: { ...(await keepingModels(measurable.target)), asked: MODELS, isHit: true } };
}

/** Requests them once. */
async function keepingModels(target: Target): Promise<Target> {
  await probe({ ...target, asked: MODELS });
  return target;
}

function figuresOf(rounds: Rounds): Figure[] {
  return [
    ...against(rounds, { one: FROM_MEMORY, other: BARE_SERVER, atLeast: 0.5 }),
    ...(rounds.has(FROM_REDIS) ? against(rounds, { one: FROM_REDIS, other: UNCACHED, atLeast: 0.9 }) : []),
    ...against(rounds, { one: CHAT_BESIDE_CACHE, other: CHAT_ALONE, atLeast: 0.97 }),
  ];
}

/** The CPU time of the measured process only, without that of Redis and the provider. */
const against = (
  rounds: Rounds,
  { one, other, atLeast }: { one: string; other: string; atLeast: number },
): Figure[] => [
  {
    what: `requests/s, ${one} against ${other}`,
    value: ratio(rounds, one, other, ({ requestsPerS }) => requestsPerS),
    unit: '',
    goal: { atLeast },
  },
  {
    what: '… requests per CPU second',
    value: ratio(rounds, other, one, ({ cpuUs }) => cpuUs),
    unit: '',
    goal: { atLeast },
  },
];
