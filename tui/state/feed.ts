/**
 * What comes one after the other and is followed, such as audit records: the oldest first, the newest last, as in a log. Who looks
 * at the end follows it; who has gone up stays where they are, and what is new is counted.
 */

export interface Feed<T> {
  /** Oldest first, at most `MOST_KEPT`. */
  items: readonly T[];
  filter: string;
  /** For what is older than the first; null: there is nothing, or nobody can say. */
  older: string | null;
  /** What is older is being asked for. */
  isReadingOlder: boolean;
  /** Whether anything was read yet. */
  isKnown: boolean;
  isFollowing: boolean;
  /** How many came since it is not followed. */
  unseen: number;
  /** The one under the cursor; null where there is none. */
  cursorId: string | null;
  /** Whether one is looked at closely. */
  isOpen: boolean;
  /** The stream that brings what is new. */
  stream: 'opening' | 'open' | 'lost';
}

export const MOST_KEPT = 1_000;

export const emptyFeed = <T>(filter = ''): Feed<T> => ({
  items: [],
  filter,
  older: null,
  isReadingOlder: false,
  isKnown: false,
  isFollowing: true,
  unseen: 0,
  cursorId: null,
  isOpen: false,
  stream: 'opening',
});

interface Identified {
  id: string;
}

/** Behind those that are known; what came twice counts once. */
export function arrived<T extends Identified>(feed: Feed<T>, items: readonly T[]): Feed<T> {
  const known = new Set(feed.items.map(({ id }) => id));
  const fresh = items.filter(({ id }) => !known.has(id) && known.add(id));
  if (fresh.length === 0) return feed;
  // Who has gone up keeps what they look at, so that more is kept for them, up to a bound.
  const most = feed.isFollowing ? MOST_KEPT : 2 * MOST_KEPT;
  const all = [...feed.items, ...fresh];
  const kept = all.slice(-most);
  return placed({
    ...feed,
    items: kept,
    // What was cut off cannot be gone on from by the old cursor.
    older: kept.length < all.length ? null : feed.older,
    unseen: feed.isFollowing ? 0 : feed.unseen + fresh.length,
  });
}

/** @param items newest first, as the API lists them. */
export function readOlder<T extends Identified>(feed: Feed<T>, items: readonly T[], older: string | null): Feed<T> {
  const known = new Set(feed.items.map(({ id }) => id));
  const fresh = items.filter(({ id }) => !known.has(id)).reverse();
  return placed({ ...feed, items: [...fresh, ...feed.items], older, isReadingOlder: false, isKnown: true });
}

export const indexOf = <T extends Identified>({ items, cursorId }: Feed<T>) =>
  items.findIndex(({ id }) => id === cursorId);

export const underCursor = <T extends Identified>(feed: Feed<T>): T | undefined => feed.items[indexOf(feed)];

/** @param by negative: towards what is older. Arriving at the newest follows again. */
export function moved<T extends Identified>(feed: Feed<T>, by: number): Feed<T> {
  const last = feed.items.length - 1;
  const index = Math.max(0, Math.min(last, indexOf(feed) + by));
  const isFollowing = index === last;
  return {
    ...feed,
    cursorId: feed.items[index]?.id ?? null,
    isFollowing,
    unseen: isFollowing ? 0 : Math.min(feed.unseen, last - index),
  };
}

/** The cursor is at the newest while it is followed, and never nowhere. */
function placed<T extends Identified>(feed: Feed<T>): Feed<T> {
  const newest = feed.items.at(-1)?.id ?? null;
  if (feed.isFollowing) return { ...feed, cursorId: newest };
  return indexOf(feed) === -1 ? { ...feed, cursorId: feed.items[0]?.id ?? null } : feed;
}

/** The items to be seen: `rows` of them around the cursor, the newest at the bottom. */
export function seen<T extends Identified>(feed: Feed<T>, rows: number): { items: readonly T[]; from: number } {
  const last = feed.items.length;
  const index = feed.isFollowing ? last - 1 : indexOf(feed);
  // A third of the screen below the cursor, as far as there is that much.
  const below = Math.floor(rows / 3);
  const end = Math.min(last, Math.max(rows, index + 1 + (feed.isFollowing ? 0 : below)));
  const from = Math.max(0, end - rows);
  return { items: feed.items.slice(from, end), from };
}
