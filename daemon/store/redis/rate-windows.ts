/**
 * Rate-limit windows that instances share: one Redis key per window, which expires on its own.
 *
 * An exhausted window is remembered in memory until it ends, so that a flood of requests sends Redis only one command per instance,
 * key and window. This uses a monotonic clock.
 */
import { LRUCache } from 'lru-cache';
import type { Clock, RateDecision, RateWindow, RateWindows } from '../../core/ports.js';
import type { RedisConnection, Script } from './connection.js';

const MAX_REMEMBERED = 10_000; // Takes about 2 MB.

/**
 * Atomic, so that no crash leaves a key without an expiry, which would count forever. A key without an expiry (written by another
 * program), or with one longer than the window (its length was reduced), gets the right one. A value that is not a number is
 * replaced.
 */
const TAKE: Script = {
  name: 'llmpRateTake',
  lua: `
local key, windowMs, limit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('SET', key, 0, 'PX', windowMs, 'NX')
local used = redis.pcall('GET', key)
used = type(used) == 'string' and tonumber(used)
if not used then
  used = 0
  redis.call('SET', key, 0, 'PX', windowMs)
end
local isWithin = 0
if used < limit then
  isWithin = 1
  redis.call('INCR', key)
end
local left = redis.call('PTTL', key)
if left < 0 or left > windowMs then
  left = windowMs
  redis.call('PEXPIRE', key, windowMs)
end
return { isWithin, left }
`,
};

interface Exhausted {
  limit: number;
  untilMs: number;
}

export class RedisRateWindows implements RateWindows {
  readonly #connection: RedisConnection;
  readonly #clock: Clock;
  readonly #exhausted = new LRUCache<string, Exhausted>({ max: MAX_REMEMBERED });

  constructor(connection: RedisConnection, clock: Clock) {
    this.#connection = connection;
    this.#clock = clock;
  }

  take(key: string, window: RateWindow): RateDecision | Promise<RateDecision> {
    const known = this.#exhausted.get(key);
    if (known && window.limit <= known.limit) {
      const resetMs = Math.min(known.untilMs - this.#clock.monotonic(), window.windowMs);
      if (resetMs > 0) return { isAllowed: false, resetMs };
    }
    return this.#takeFromRedis(key, window);
  }

  async #takeFromRedis(key: string, { limit, windowMs }: RateWindow): Promise<RateDecision> {
    const askedAtMs = this.#clock.monotonic();
    const args = [`llmp:rate:${key}`, windowMs, limit];
    const [allowed, resetMs] = (await this.#connection.run(TAKE, args)) as [number, number];
    const isAllowed = allowed === 1;
    if (isAllowed) this.#exhausted.delete(key);
    else this.#exhausted.set(key, { limit, untilMs: askedAtMs + resetMs });
    return { isAllowed, resetMs };
  }
}
