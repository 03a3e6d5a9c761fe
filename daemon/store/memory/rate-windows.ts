import { LRUCache } from 'lru-cache';
import type { Clock, RateTaken, RateWindow, RateWindows } from '../../core/ports.js';

const MOST_KEYS = 100_000;

interface Open {
  beganAtMs: number;
  within: number;
}

/**
 * Fixed windows of this process. Beyond `mostKeys` the one that was asked for longest ago is forgotten: to get out of its
 * own window a key must first make room for that many others. A changed limit or length counts at once, in open windows too.
 */
export class MemoryRateWindows implements RateWindows {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #mostKeys: number;
  // Made when the first is opened, for it takes its room at once, and limits are off as a rule. No `ttl`: it has a clock of its own.
  #open: LRUCache<string, Open> | null = null;

  constructor(clock: Pick<Clock, 'monotonic'>, mostKeys = MOST_KEYS) {
    this.#clock = clock;
    this.#mostKeys = mostKeys;
  }

  /** How many keys are remembered. */
  get size(): number {
    return this.#open?.size ?? 0;
  }

  take(key: string, { limit, windowMs }: RateWindow): RateTaken {
    const now = this.#clock.monotonic();
    this.#open ??= new LRUCache({ max: this.#mostKeys });
    let open = this.#open.get(key);
    if (!open || now >= open.beganAtMs + windowMs) {
      open = { beganAtMs: now, within: 0 };
      this.#open.set(key, open);
    }
    const isWithin = open.within < limit;
    if (isWithin) open.within++;
    return { isWithin, resetMs: open.beganAtMs + windowMs - now };
  }
}
