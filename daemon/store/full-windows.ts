import { LRUCache } from 'lru-cache';
import type { Clock, RateDecision, RateWindow } from '../core/ports.js';

const MAX_REMEMBERED = 10_000; // Takes about 2 MB.

/**
 * Rate-limit windows elsewhere that are full, until they end: a flood of requests asks only once per process, key and window.
 * This uses a monotonic clock.
 */
export class FullWindows {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #full = new LRUCache<string, RateWindow & { untilMs: number }>({ max: MAX_REMEMBERED });

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** @returns null if the window is not known to be full. */
  refusalFor(key: string, { limit, windowMs }: RateWindow): RateDecision | null {
    const full = this.#full.get(key);
    if (!full || limit > full.limit || windowMs !== full.windowMs) return null;
    const resetMs = full.untilMs - this.#clock.monotonic();
    return resetMs > 0 ? { isAllowed: false, resetMs } : null;
  }

  /** @param atMs when the decision was made, or earlier (monotonic). */
  remember(key: string, window: RateWindow, { isAllowed, resetMs }: RateDecision, atMs: number): void {
    if (!isAllowed) this.#full.set(key, { ...window, untilMs: atMs + resetMs });
  }
}
