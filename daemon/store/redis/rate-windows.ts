/**
 * Rate windows that several instances share: a key in Redis each, which ends by itself.
 *
 * What is over its limit is remembered here until its window ends, so that a flood costs Redis nothing: as long as it lasts, one
 * command an instance, key and window. Our clock for that never jumps.
 */
import { LRUCache } from 'lru-cache';
import type { Clock, RateTaken, RateWindow, RateWindows } from '../../core/ports.js';
import type { RedisConnection, Script } from './connection.js';

const MOST_REMEMBERED = 10_000; // About 2 MB.

/**
 * In one piece, so that nothing that ends in between leaves a key that never ends, and so counts for ever. One without an end
 * (of somebody else), or with one later than the window is long (it was shortened), gets its end; one that is no number is replaced.
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
  readonly #exhausted = new LRUCache<string, Exhausted>({ max: MOST_REMEMBERED });

  constructor(connection: RedisConnection, clock: Clock) {
    this.#connection = connection;
    this.#clock = clock;
  }

  take(key: string, window: RateWindow): RateTaken | Promise<RateTaken> {
    const known = this.#exhausted.get(key);
    if (known && window.limit <= known.limit) {
      const resetMs = Math.min(known.untilMs - this.#clock.monotonic(), window.windowMs);
      if (resetMs > 0) return { isWithin: false, resetMs };
    }
    return this.#ask(key, window);
  }

  async #ask(key: string, { limit, windowMs }: RateWindow): Promise<RateTaken> {
    const askedAtMs = this.#clock.monotonic();
    const args = [`llmp:rate:${key}`, windowMs, limit];
    const [within, resetMs] = (await this.#connection.run(TAKE, args)) as [number, number];
    const isWithin = within === 1;
    if (isWithin) this.#exhausted.delete(key);
    else this.#exhausted.set(key, { limit, untilMs: askedAtMs + resetMs });
    return { isWithin, resetMs };
  }
}
