/** Rate-limit windows that instances share: one Redis key per window, which expires on its own. */
import type { Clock, RateDecision, RateWindow, RateWindows } from '../../core/ports.js';
import { FullWindows } from '../full-windows.js';
import type { RedisConnection, Script } from './connection.js';

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

export class RedisRateWindows implements RateWindows {
  readonly #connection: RedisConnection;
  readonly #clock: Clock;
  readonly #full: FullWindows;

  constructor(connection: RedisConnection, clock: Clock) {
    this.#connection = connection;
    this.#clock = clock;
    this.#full = new FullWindows(clock);
  }

  take(key: string, window: RateWindow): RateDecision | Promise<RateDecision> {
    return this.#full.refusalFor(key, window) ?? this.#takeFromRedis(key, window);
  }

  async #takeFromRedis(key: string, window: RateWindow): Promise<RateDecision> {
    const askedAtMs = this.#clock.monotonic();
    const args = [`llmp:rate:${key}`, window.windowMs, window.limit];
    const [allowed, resetMs] = (await this.#connection.run(TAKE, args)) as [number, number];
    const decision = { isAllowed: allowed === 1, resetMs };
    this.#full.remember(key, window, decision, askedAtMs);
    return decision;
  }
}
