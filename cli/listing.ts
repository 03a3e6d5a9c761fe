/** Whole lists out of pages. */
import { integer } from '../config/kinds.js';
import type { Page } from '../daemon/api/client.js';
import { MAX_PAGE_SIZE } from '../daemon/api/vocabulary.js';
import { value } from './option.js';
import type { Output } from './output.js';

// More than anybody reads, and still only ten requests.
const DEFAULT_LIMIT = 10_000;

export const limit = value('--limit <COUNT>', integer(1, 1_000_000), `at most so many; ${DEFAULT_LIMIT} unless given`);

/** Fetches pages until the end or `most` items, and says on stderr when the end was not reached. */
export async function listed<T>(
  fetchPage: (page: { limit: string; cursor?: string }) => Promise<Page<T>>,
  most: number | undefined,
  output: Output,
): Promise<T[]> {
  const bound = most ?? DEFAULT_LIMIT;
  const items: T[] = [];
  let cursor: string | null = null;
  do {
    const size = String(Math.min(MAX_PAGE_SIZE, bound - items.length));
    const page: Page<T> = await fetchPage(cursor === null ? { limit: size } : { limit: size, cursor });
    items.push(...page.items);
    cursor = page.next;
    if (cursor !== null && items.length >= bound) {
      const all = page.total === null ? '' : ` of ${page.total}`;
      const message = `only the first ${items.length}${all} are shown; use --limit for more`;
      // Who asked for so many knows it; who did not must not take a part for the whole.
      if (most === undefined) output.warn(message);
      else output.note(message);
      return items;
    }
  } while (cursor !== null);
  return items;
}
