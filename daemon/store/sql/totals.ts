import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/ports.js';
import { Spared } from '../../core/spared.js';

/** Of fewer the total is always that of now: somebody may have just made one, and look for it. */
const MANY = 20_000;
const MOST_LISTS = 1_000;

/**
 * How many there are in lists that are looked at over and over. To count a million takes PostgreSQL longer than all else of a page, so
 * the total of a long list may be of a moment ago.
 */
export class Totals {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #lists = new LRUCache<string, Spared<number>>({ max: MOST_LISTS });

  constructor(clock: Pick<Clock, 'monotonic' | 'after'>) {
    this.#clock = clock;
  }

  /** @param filter what is counted, as a text. */
  of(filter: string, count: () => Promise<number>): Promise<number> {
    let list = this.#lists.get(filter);
    if (!list) {
      list = new Spared(this.#clock, (total) => total >= MANY);
      this.#lists.set(filter, list);
    }
    return list.current(count);
  }
}
