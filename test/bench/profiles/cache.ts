/**
 * An answer out of the cache beside what it saves: against a server that does nothing else, and against asking the provider.
 * And what a cache costs those who have no use for it.
 */
import { MODELS } from '../asked.js';
import { BARE_SERVER, type Measurable, startBareServer, startProvider } from '../baselines.js';
import { startDaemon } from '../daemon.js';
import type { Figure } from '../figures.js';
import { probe, type Target } from '../load.js';
import { startRedis } from '../redis.js';
import { compare, idleWarning, ratio, type Rounds, rowsOf } from '../rounds.js';
import type { Bench, Report } from '../run.js';

const FROM_MEMORY = 'GET, kept in memory';
const FROM_REDIS = 'GET, kept in Redis';
const UNCACHED = 'GET, forwarded, cache off';
const CHAT_BESIDE_CACHE = 'chat, cache on, not opted in';
const CHAT_ALONE = 'chat, cache off';
// Longer than any run: no round has a miss in it.
const KEPT = { HTTP_CACHE_ENABLED: 'true', HTTP_CACHE_DEFAULT_TTL: '86400' };

export async function cache(bench: Bench): Promise<Report> {
  const provider = await startProvider(bench);
  const bare = await startBareServer(bench);
  const off = await startDaemon(bench, provider.url);
  const settings = { ...KEPT, HTTP_CACHE_BACKEND: 'memory' };
  const inMemory = await startDaemon(bench, provider.url, settings);
  // One of its own, which keeps something too: what V8 made of the code while it served hits is not to be measured with it.
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
    console.error('no redis-server here: what is kept in Redis is not measured');
    return null;
  }
  const settings = { ...KEPT, HTTP_CACHE_BACKEND: 'redis', REDIS_ADDR: redis.address };
  const service = await startDaemon(bench, upstreamUrl, settings);
  return { name: FROM_REDIS, service, target: await service.targetWithToken(0) };
}

/** Whatever is measured of it is a hit. */
async function keeping(measurable: Measurable): Promise<Measurable> {
  return { ...measurable, target: { ...(await keepingModels(measurable.target)), asked: MODELS, isHit: true } };
}

/** Asks for them once. */
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

/** The processor time is that of the process measured: what Redis and the provider take beside it is not in it. */
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
