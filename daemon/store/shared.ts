import type { Live, Settings } from '../../config/settings.js';
import type { CacheStore, Clock, EventBus, Log, Pokes, RateWindows } from '../core/ports.js';
import { MemoryEventBus } from './memory/event-bus.js';
import { MemoryResponseCache } from './memory/response-cache.js';
import { type RedisAddress, redisAddressFrom, type RedisSettings } from './redis/address.js';
import type { RedisConnection } from './redis/connection.js';

export interface SharedStores {
  /** Null without REDIS_ADDR. */
  redis: RedisConnection | null;
  /** Null when nothing is to be cached. */
  cache: CacheStore | null;
  /** Null where this instance counts alone. */
  rateWindows: RateWindows | null;
  /** Null when nothing is to be published. */
  bus: EventBus | null;
  /** Null where no other instance can be told of anything but by the database. */
  pokes: Pokes | null;
  close(): Promise<void>;
}

export interface SharedStoresOptions {
  settings: RedisSettings &
    Pick<
      Settings,
      | 'httpCacheEnabled'
      | 'httpCacheBackend'
      | 'eventBus'
      | 'redisStreamKey'
      | 'redisStreamMaxLength'
      | 'observabilityBufferSize'
    >;
  live: Live<'httpCacheMaxBytes'>;
  clock: Clock;
  log: Log;
  /** Which daemon this is, for those who read its events. */
  instanceId: string;
  /** Of 32 bytes, each for one purpose. */
  deriveKey: (purpose: string) => Buffer;
  /** Whether other instances use the same database. */
  isShared: boolean;
  /** How long a command to Redis may take while a request waits for it, in ms; as shipped when undefined. */
  redisCommandMs: number | undefined;
}

/**
 * What instances share where there is Redis, and each has for itself otherwise. Waits for the first try to reach Redis, half a
 * second at most; one that is away keeps nobody from starting.
 */
export async function openSharedStores(options: SharedStoresOptions): Promise<SharedStores> {
  const { settings, live, clock, log, instanceId, deriveKey, isShared, redisCommandMs } = options;
  const address = redisAddressFrom(settings);
  const isInMemory = settings.httpCacheEnabled && settings.httpCacheBackend === 'memory';
  const memory = isInMemory ? new MemoryResponseCache(live, clock) : null;
  const localBus = settings.eventBus === 'in-memory' ? new MemoryEventBus(instanceId, clock) : null;
  if (!address) {
    return {
      redis: null,
      cache: memory,
      rateWindows: null,
      bus: localBus,
      pokes: null,
      close: () => Promise.resolve(),
    };
  }

  // Who has no Redis need not load what talks to it.
  const [{ RedisConnection }, { RedisPokes }, { RedisRateWindows }, { RedisResponseCache }] = await Promise.all([
    import('./redis/connection.js'),
    import('./redis/pokes.js'),
    import('./redis/rate-windows.js'),
    import('./redis/response-cache.js'),
  ]);
  const redis = new RedisConnection({ address, clock, log, commandMs: redisCommandMs });
  const isCached = settings.httpCacheEnabled && !isInMemory;
  const cache = isCached
    ? new RedisResponseCache({ connection: redis, clock, key: deriveKey('response cache') })
    : null;
  const redisBus = settings.eventBus === 'redis-streams' ? await redisBusOf(address, options) : null;
  const pokes = isShared
    ? new RedisPokes({ address, sender: redis, key: deriveKey('pokes'), instanceId, clock, log })
    : null;
  await Promise.all([redis.open(), redisBus?.open(), pokes?.open()]);
  return {
    redis,
    cache: cache ?? memory,
    rateWindows: new RedisRateWindows(redis, clock),
    bus: redisBus ?? localBus,
    pokes,
    async close() {
      pokes?.close();
      await redisBus?.close();
      await cache?.close();
      redis.close();
    },
  };
}

async function redisBusOf(address: RedisAddress, { settings, clock, log, instanceId }: SharedStoresOptions) {
  const { RedisEventBus } = await import('./redis/event-bus.js');
  const { redisStreamKey, redisStreamMaxLength, observabilityBufferSize } = settings;
  return new RedisEventBus({
    address,
    instance: instanceId,
    key: redisStreamKey,
    maxLength: redisStreamMaxLength,
    bufferSize: observabilityBufferSize,
    clock,
    log,
  });
}
