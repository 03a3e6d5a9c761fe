import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/ports.js';
import { AdaptiveMemo } from '../../core/adaptive-memo.js';

/** Smaller totals are always current: a user may have just created an item, and look for it. */
const MANY = 20_000;
const MAX_LISTS = 1_000;

/**
 * Cache of list totals. Counting a million rows takes PostgreSQL longer than the rest of a page, so the total of a long list may be
 * slightly out of date.
 */
export class ListTotals {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #lists = new LRUCache<string, AdaptiveMemo<number>>({ max: MAX_LISTS });

  constructor(clock: Pick<Clock, 'monotonic' | 'after'>) {
    this.#clock = clock;
  }

  /** @param filter the counted filter, as text. */
  of(filter: string, count: () => Promise<number>): Promise<number> {
    let list = this.#lists.get(filter);
    if (!list) {
      list = new AdaptiveMemo(this.#clock, (total) => total >= MANY);
      this.#lists.set(filter, list);
    }
    return list.current(count);
  }
}
