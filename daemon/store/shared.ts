import { type Live, type Settings, SettingsError } from '../../config/settings.js';
import type { CacheStore, Clock, EventBus, Log, Notifications, RateWindows } from '../core/ports.js';
import { MemoryEventBus } from './memory/event-bus.js';
import { MemoryResponseCache } from './memory/response-cache.js';
import type { RedisLimits } from './redis/limits.js';
import { type RedisAddress, redisAddressFrom, type RedisSettings } from './redis/address.js';
import type { RedisConnection } from './redis/connection.js';

export interface SharedStores {
  /** Null without REDIS_ADDR. */
  redis: RedisConnection | null;
  /** Null when caching is disabled. */
  cache: CacheStore | null;
  /** Null when each instance counts on its own. */
  rateWindows: RateWindows | null;
  /** Null when the limits of tokens and projects are not counted in Redis. */
  limits: RedisLimits | null;
  /** Null when events are disabled. */
  bus: EventBus | null;
  /** Null when instances learn about changes only from the database. */
  notifications: Notifications | null;
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
  /** Identifies this daemon in the events that it publishes. */
  instanceId: string;
  /** Derives a 32-byte key for one purpose. */
  deriveKey: (purpose: string) => Buffer;
  /** Whether other instances use the same database. */
  isShared: boolean;
  /** Timeout in ms for Redis commands that a request waits for. Default when undefined: `COMMAND_MS` in redis/connection.ts. */
  redisCommandMs: number | undefined;
}

/**
 * Opens the stores that instances share through Redis, or local ones without Redis. Waits for the first connection attempt, up to
 * about half a second; an unavailable Redis does not prevent the daemon from starting.
 *
 * @throws {SettingsError} for a server that llmp cannot use, such as one in cluster mode.
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
      limits: null,
      bus: localBus,
      notifications: null,
      close: () => Promise.resolve(),
    };
  }

  // Without Redis these modules are not loaded.
  const [{ RedisConnection }, { RedisLimits }, { RedisNotifications }, { RedisRateWindows }, { RedisResponseCache }] =
    await Promise.all([
      import('./redis/connection.js'),
      import('./redis/limits.js'),
      import('./redis/notifications.js'),
      import('./redis/rate-windows.js'),
      import('./redis/response-cache.js'),
    ]);
  const redis = new RedisConnection({ address, clock, log, commandMs: redisCommandMs });
  const isCached = settings.httpCacheEnabled && !isInMemory;
  const cache = isCached
    ? new RedisResponseCache({ connection: redis, clock, key: deriveKey('response cache') })
    : null;
  const limits = isShared ? new RedisLimits({ connection: redis, clock, instanceId }) : null;
  const redisBus = settings.eventBus === 'redis-streams' ? await redisBusOf(address, options) : null;
  const notifications = isShared
    ? new RedisNotifications({ address, sender: redis, key: deriveKey('notifications'), instanceId, clock, log })
    : null;
  await Promise.all([redis.open(), redisBus?.open(), notifications?.open()]);
  const stores: SharedStores = {
    redis,
    cache: cache ?? memory,
    rateWindows: new RedisRateWindows(redis, clock),
    limits,
    bus: redisBus ?? localBus,
    notifications,
    async close() {
      notifications?.close();
      await redisBus?.close();
      await cache?.close();
      redis.close();
    },
  };
  if (redis.misfit === null) return stores;
  await stores.close();
  throw new SettingsError([`REDIS_ADDR: ${redis.misfit}`]);
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
