import type { Settings } from '../../config/settings.js';
import type { CacheStore, Clock, Log, RateWindows } from '../core/ports.js';
import { MemoryResponseCache } from './memory/response-cache.js';
import { redisAddressFrom } from './redis/address.js';
import type { RedisConnection } from './redis/connection.js';

export interface SharedStores {
  /** Null without REDIS_ADDR. */
  redis: RedisConnection | null;
  /** Null when nothing is to be cached. */
  cache: CacheStore | null;
  /** Null where this instance counts alone. */
  rateWindows: RateWindows | null;
  close(): Promise<void>;
}

export interface SharedStoresOptions {
  live: { readonly current: Settings };
  clock: Clock;
  log: Log;
  /** Of 32 bytes, each for one purpose. */
  deriveKey: (purpose: string) => Buffer;
}

/**
 * What instances share where there is Redis, and each has for itself otherwise. Waits for the first try to reach Redis, half a
 * second at most; one that is away keeps nobody from starting.
 */
export async function openSharedStores({ live, clock, log, deriveKey }: SharedStoresOptions): Promise<SharedStores> {
  const settings = live.current;
  const address = redisAddressFrom(settings);
  const isInMemory = settings.httpCacheEnabled && settings.httpCacheBackend === 'memory';
  const memory = isInMemory ? new MemoryResponseCache(live, clock) : null;
  if (!address) return { redis: null, cache: memory, rateWindows: null, close: () => Promise.resolve() };

  // Who has no Redis need not load what talks to it.
  const [{ RedisConnection }, { RedisRateWindows }, { RedisResponseCache }] = await Promise.all([
    import('./redis/connection.js'),
    import('./redis/rate-windows.js'),
    import('./redis/response-cache.js'),
  ]);
  const redis = new RedisConnection({ address, clock, log });
  const isShared = settings.httpCacheEnabled && !isInMemory;
  const cache = isShared
    ? new RedisResponseCache({ connection: redis, clock, key: deriveKey('response cache') })
    : null;
  await redis.open();
  return {
    redis,
    cache: cache ?? memory,
    rateWindows: new RedisRateWindows(redis, clock),
    async close() {
      await cache?.close();
      redis.close();
    },
  };
}
