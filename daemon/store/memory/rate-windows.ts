import { LRUCache } from 'lru-cache';
import type { Clock, RateDecision, RateWindow, RateWindows } from '../../core/ports.js';
import type { RateLimitPolicy } from '../../core/refusal.js';

const MAX_KEYS = 100_000;

interface OpenWindow {
  beganAtMs: number;
  within: number;
}

/**
 * Fixed rate-limit windows in memory, up to `maxKeys`. Beyond that the least recently used window is evicted: a client would need
 * that many other keys to escape its own window. A changed limit or window length applies at once, also to open windows.
 */
export class MemoryRateWindows implements RateWindows {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #maxKeys: number;
  // Created with the first window, because it allocates all of its memory at once and limits are off by default. No `ttl` option:
  // that uses its own clock.
  #windows: LRUCache<string, OpenWindow> | null = null;

  constructor(clock: Pick<Clock, 'monotonic'>, maxKeys = MAX_KEYS) {
    this.#clock = clock;
    this.#maxKeys = maxKeys;
  }

  /** Number of open windows. */
  get size(): number {
    return this.#windows?.size ?? 0;
  }

  take(key: string, { limit, windowMs }: RateWindow): RateDecision {
    const now = this.#clock.monotonic();
    this.#windows ??= new LRUCache({ max: this.#maxKeys });
    let open = this.#windows.get(key);
    if (!open || now >= open.beganAtMs + windowMs) {
      open = { beganAtMs: now, within: 0 };
      this.#windows.set(key, open);
    }
    const isAllowed = open.within < limit;
    if (isAllowed) open.within++;
    return { isAllowed, resetMs: open.beganAtMs + windowMs - now };
  }
}

// A client would need that many valid tokens to escape the limit of one.
const MAX_SELF_KEYS = 10_000;

/** Windows for the limits on /v1, separate so that the keys of one limit cannot evict those of another. */
export const localRateWindows = (clock: Pick<Clock, 'monotonic'>): Record<RateLimitPolicy, MemoryRateWindows> => ({
  address: new MemoryRateWindows(clock),
  global: new MemoryRateWindows(clock, 1),
  self: new MemoryRateWindows(clock, MAX_SELF_KEYS),
});
