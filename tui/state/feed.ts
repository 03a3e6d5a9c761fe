/**
 * A feed: a list that grows at its end, such as audit records, oldest first as in a log. With the cursor on the newest item the view
 * follows the feed. With the cursor further up the view stays in place, and new items are counted.
 */

export interface Feed<T> {
  /** Oldest first; up to `MAX_FOLLOWED` items while following, otherwise up to `MAX_SCROLLBACK`. */
  items: readonly T[];
  filter: string;
  /** Cursor of the page before the first item; null: none, or not known. */
  older: string | null;
  /** Older items were dropped, and can be loaded again. */
  isTruncated: boolean;
  /** Older items are being loaded. */
  isReadingOlder: boolean;
  /** Whether the newest items were loaded once. */
  isLoaded: boolean;
  /** Whether all items since the first one are known, and new ones are streamed. */
  isKnown: boolean;
  isFollowing: boolean;
  /** Number of new items since the view stopped following. */
  unseen: number;
  /** Id of the item under the cursor; null if there is none. */
  cursorId: string | null;
  /** The item whose details are open. It stays open when new items arrive, until the operator moves or closes it. */
  opened: T | null;
  /** The newest item is to be opened as soon as the first page is loaded. */
  opensNewest: boolean;
  /** Items that the filter hides, up to `MAX_FOLLOWED`, to show again when the filter changes. Unused in the audit log. */
  filteredOut: readonly T[];
  /** While `isKnown` is false: items after this time may be missing. Null: after the first one. */
  gapFrom: string | null;
  /** Pages that are being loaded one after the other; null: none. */
  search: Search | null;
  /** State of the stream of new items. */
  stream: 'opening' | 'open' | 'lost';
}

/** @returns the query of the newest page, changed to items before the loaded ones; null: there are none, or it is not known. */
export function olderQuery<Q extends object>(
  { older, isTruncated, items: [first] }: Pick<Feed<{ time: string }>, 'older' | 'isTruncated' | 'items'>,
  newest: Q | null,
): (Q & { cursor?: string; until?: string }) | null {
  if (newest === null) return null;
  if (older !== null) return { ...newest, cursor: older };
  // Includes the same millisecond, which may have other items.
  return isTruncated && first ? { ...newest, until: new Date(Date.parse(first.time) + 1).toISOString() } : null;
}

/** A search for older items, page by page, until it has what is needed. */
export interface Search {
  /** The query whose response is awaited. */
  query: Readonly<Record<string, string | undefined>>;
  /** Whether it began with the newest page, so that no later item is missing once it has ended. */
  isFromNewest: boolean;
  /** Items before this time are known: the search must reach it. Null: none are known. */
  untilTime: string | null;
  /** The number of items that are needed. */
  needed: number;
  /** Limit of further pages. */
  pagesLeft: number;
}

export const MAX_FOLLOWED = 1_000;
/** Limit while not following, so that the items in view are not dropped. */
export const MAX_SCROLLBACK = 5_000;

export const emptyFeed = <T>(filter = ''): Feed<T> => ({
  items: [],
  filter,
  older: null,
  isTruncated: false,
  isReadingOlder: false,
  isLoaded: false,
  isKnown: false,
  isFollowing: true,
  unseen: 0,
  cursorId: null,
  opened: null,
  opensNewest: false,
  filteredOut: [],
  gapFrom: null,
  search: null,
  stream: 'opening',
});

export interface FeedItem {
  id: string;
  /** RFC 3339, in UTC, all with the same precision so that they compare as strings. */
  time: string;
  /** Audit records only. */
  batch?: string | null;
}

/** Replaces known items, whose counts may have changed, and inserts new ones by time, mostly at the end. */
function merged<T extends FeedItem>(known: readonly T[], items: readonly T[]): { all: readonly T[]; fresh: number } {
  const byId = new Map([...known, ...items].map((item) => [item.id, item]));
  const all = [...byId.values()].sort((one, other) => (one.time < other.time ? -1 : one.time > other.time ? 1 : 0));
  return { all, fresh: all.length - known.length };
}

/** Adds new items, oldest first. Duplicates count once. */
export function withNewItems<T extends FeedItem>(feed: Feed<T>, items: readonly T[]): Feed<T> {
  const { all, fresh } = merged(feed.items, items);
  const kept = all.slice(-limitOf(feed));
  const isTruncated = kept.length < all.length;
  return withCursor({
    ...feed,
    opened: current(feed.opened, items),
    items: kept,
    isKnown: true,
    // The cursor does not continue from the dropped items.
    older: isTruncated ? null : feed.older,
    isTruncated: feed.isTruncated || isTruncated,
    unseen: feed.isFollowing ? 0 : feed.unseen + fresh,
  });
}

/** The open item may have changed, as the count in the use record of a token does. */
const current = <T extends FeedItem>(opened: T | null, items: readonly T[]): T | null =>
  opened && (items.find(({ id }) => id === opened.id) ?? opened);

/** Adds a page of stored items, oldest first. @param older the cursor of the page before it. */
export function withOlderItems<T extends FeedItem>(feed: Feed<T>, items: readonly T[], older: string | null): Feed<T> {
  const { all } = merged(feed.items, items);
  const last = feed.items.at(-1)?.time;
  // A batch that was known has a later time if it has got more members.
  const known = new Set(feed.items.map(({ id }) => id));
  const newer = last === undefined ? 0 : all.filter(({ id, time }) => time > last && !known.has(id)).length;
  return withCursor({
    ...feed,
    opened: current(feed.opened, items),
    items: all,
    older,
    isTruncated: false,
    isReadingOlder: false,
    unseen: feed.isFollowing ? 0 : feed.unseen + newer,
  });
}

export const indexOf = <T extends FeedItem>({ items, cursorId }: Feed<T>) =>
  items.findIndex(({ id }) => id === cursorId);

export const underCursor = <T extends FeedItem>(feed: Feed<T>): T | undefined => feed.items[indexOf(feed)];

/** Moves the cursor; a negative `by` moves towards older items. Reaching the newest item resumes following. */
export function moved<T extends FeedItem>(feed: Feed<T>, by: number): Feed<T> {
  const last = feed.items.length - 1;
  if (last < 0) return feed;
  const index = Math.max(0, Math.min(last, indexOf(feed) + by));
  const isFollowing = index === last;
  const item = feed.items[index];
  return {
    ...feed,
    cursorId: item?.id ?? null,
    opened: feed.opened && (item ?? feed.opened),
    isFollowing,
    unseen: isFollowing ? 0 : Math.min(feed.unseen, last - index),
  };
}

/** Opens the details of the item under the cursor and stops following, or closes them. */
export function detailToggled<T extends FeedItem>(feed: Feed<T>): Feed<T> {
  const item = underCursor(feed);
  if (feed.opened === null) return item ? { ...feed, opened: item, isFollowing: false } : feed;
  const isAtEnd = item !== undefined && item.id === feed.items.at(-1)?.id;
  return { ...feed, opened: null, isFollowing: isAtEnd };
}

/** Applies another filter to all items in memory, hidden ones included. */
export function refiltered<T extends FeedItem>(feed: Feed<T>, filter: string, matches: (item: T) => boolean): Feed<T> {
  const { all } = merged(feed.filteredOut, feed.items);
  const items = all.filter(matches);
  const filteredOut = all.filter((item) => !matches(item)).slice(-MAX_FOLLOWED);
  return withCursor({ ...feed, filter, items, filteredOut, unseen: 0 });
}

/** Hides the items that do not match. @returns the feed, and the matching items, which are still to be added. */
export function withHiddenItems<T extends FeedItem>(
  feed: Feed<T>,
  items: readonly T[],
  matches: (item: T) => boolean,
): { feed: Feed<T>; shown: readonly T[] } {
  const shown = items.filter(matches);
  if (shown.length === items.length) return { feed, shown };
  const others = merged(
    feed.filteredOut,
    items.filter((item) => !matches(item)),
  ).all;
  return { feed: { ...feed, filteredOut: others.slice(-MAX_FOLLOWED) }, shown };
}

const limitOf = ({ isFollowing }: Pick<Feed<unknown>, 'isFollowing'>) => (isFollowing ? MAX_FOLLOWED : MAX_SCROLLBACK);

/** Whether there are as many items since a time as the feed holds. */
export const isFullSince = <T extends FeedItem>(feed: Feed<T>, time: string): boolean =>
  feed.items.filter((item) => item.time >= time).length >= limitOf(feed);

/** Drops the oldest items beyond the limit; they can be loaded again. */
export function withinLimit<T extends FeedItem>(feed: Feed<T>): Feed<T> {
  const limit = limitOf(feed);
  if (feed.items.length <= limit) return feed;
  return withCursor({ ...feed, items: feed.items.slice(-limit), older: null, isTruncated: true });
}

/** The pages have reached the known items. @param first the time of the first item of the last page: its cursor may not continue from the first item. */
export const joinedAt = <T extends FeedItem>(feed: Feed<T>, first: string | undefined): Feed<T> =>
  first !== undefined && feed.items[0] !== undefined && feed.items[0].time < first
    ? { ...feed, older: null, isTruncated: true }
    : feed;

/** Drops the items before a time: between them and the others some may be missing. */
export const restartedAt = <T extends FeedItem>(feed: Feed<T>, time: string): Feed<T> =>
  withCursor({ ...feed, items: feed.items.filter((item) => item.time >= time) });

/** Keeps the cursor on the newest item while following, and always on an existing item. */
function withCursor<T extends FeedItem>(feed: Feed<T>): Feed<T> {
  const newest = feed.items.at(-1)?.id ?? null;
  if (feed.isFollowing) return { ...feed, cursorId: newest };
  return indexOf(feed) === -1 ? { ...feed, cursorId: feed.items[0]?.id ?? null } : feed;
}

/** The visible items: `rows` of them around the cursor, the newest at the bottom. */
export function visibleItems<T extends FeedItem>(feed: Feed<T>, rows: number): { items: readonly T[]; from: number } {
  const last = feed.items.length;
  const index = feed.isFollowing ? last - 1 : indexOf(feed);
  // Show a third of the screen below the cursor, if there are enough items.
  const below = Math.floor(rows / 3);
  const end = Math.min(last, Math.max(rows, index + 1 + (feed.isFollowing ? 0 : below)));
  const from = Math.max(0, end - rows);
  return { items: feed.items.slice(from, end), from };
}
