/** Fetches lists page by page. */
import { integer } from '../config/kinds.js';
import type { Page } from '../daemon/api/client.js';
import { MAX_PAGE_SIZE } from '../daemon/api/vocabulary.js';
import { value } from './option.js';
import type { Output } from './output.js';

// More than a person reads, and only ten requests.
const DEFAULT_LIMIT = 10_000;

export const limit = value(
  '--limit <COUNT>',
  integer(1, 1_000_000),
  `maximum number of items (default: ${DEFAULT_LIMIT})`,
);

export type PageFetcher<T> = (page: { limit: string; cursor?: string }) => Promise<Page<T>>;

/** Fetches all items, of which the API does not select those that match, and returns up to `most` of those. */
export async function selected<T>(
  fetchPage: PageFetcher<T>,
  matches: (item: T) => boolean,
  most: number | undefined,
  output: Output,
): Promise<T[]> {
  return (await listed(fetchPage, undefined, output)).filter(matches).slice(0, most);
}

/** Fetches pages until the end, or until `most` items. Prints a message on stderr if the list is incomplete. */
export async function listed<T>(fetchPage: PageFetcher<T>, most: number | undefined, output: Output): Promise<T[]> {
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
      // Without --limit this is a warning: the user must not mistake a part for the complete list.
      if (most === undefined) output.warn(message);
      else output.note(message);
      return items;
    }
  } while (cursor !== null);
  return items;
}
