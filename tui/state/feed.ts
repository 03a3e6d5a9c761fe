/**
 * What comes one after the other and is followed, such as audit records: the oldest first, the newest last, as in a log. Who looks
 * at the end follows it; who has gone up stays where they are, and what is new is counted.
 */

export interface Feed<T> {
  /** Oldest first, at most `MOST_KEPT`, or `MOST_READ` for who has gone up. */
  items: readonly T[];
  filter: string;
  /** For what is older than the first; null: there is nothing, or nobody can say. */
  older: string | null;
  /** What was older was let go: it is there to be read again. */
  isCut: boolean;
  /** What is older is being asked for. */
  isReadingOlder: boolean;
  /** Whether anything was read yet. */
  isKnown: boolean;
  isFollowing: boolean;
  /** How many came since it is not followed. */
  unseen: number;
  /** The one under the cursor; null where there is none. */
  cursorId: string | null;
  /** The one that is looked at closely. It stays that one whatever comes, until the operator moves on or closes it. */
  opened: T | null;
  /** Those that the filter holds back, at most `MOST_KEPT`: they are there again without it. Not for what the daemon filters. */
  aside: readonly T[];
  /** The stream that brings what is new. */
  stream: 'opening' | 'open' | 'lost';
}

export const MOST_KEPT = 1_000;
/** Who has gone up keeps what they look at, up to a bound. */
export const MOST_READ = 5_000;

export const emptyFeed = <T>(filter = ''): Feed<T> => ({
  items: [],
  filter,
  older: null,
  isCut: false,
  isReadingOlder: false,
  isKnown: false,
  isFollowing: true,
  unseen: 0,
  cursorId: null,
  opened: null,
  aside: [],
  stream: 'opening',
});

export interface Happened {
  id: string;
  /** RFC 3339, in UTC and all to the same digit. */
  time: string;
}

/** Known ones are replaced, for they may count on; others go to where their time is, which is mostly behind all. */
function merged<T extends Happened>(known: readonly T[], items: readonly T[]): { all: readonly T[]; fresh: number } {
  const byId = new Map([...known, ...items].map((item) => [item.id, item]));
  const all = [...byId.values()].sort((one, other) => (one.time < other.time ? -1 : one.time > other.time ? 1 : 0));
  return { all, fresh: all.length - known.length };
}

/** Those that happened lately, oldest first; what came twice counts once. */
export function arrived<T extends Happened>(feed: Feed<T>, items: readonly T[]): Feed<T> {
  const { all, fresh } = merged(feed.items, items);
  const kept = all.slice(-(feed.isFollowing ? MOST_KEPT : MOST_READ));
  const isCut = kept.length < all.length;
  const { opened } = feed;
  return placed({
    ...feed,
    // It may count on, as the use of a token does.
    opened: opened && (items.find(({ id }) => id === opened.id) ?? opened),
    items: kept,
    isKnown: true,
    // What was cut off cannot be gone on from by the old cursor.
    older: isCut ? null : feed.older,
    isCut: feed.isCut || isCut,
    unseen: feed.isFollowing ? 0 : feed.unseen + fresh,
  });
}

/** @param items oldest first: what is older than all that is known. */
export function readOlder<T extends Happened>(feed: Feed<T>, items: readonly T[], older: string | null): Feed<T> {
  const { all } = merged(feed.items, items);
  return placed({ ...feed, items: all, older, isCut: false, isReadingOlder: false, isKnown: true });
}

export const indexOf = <T extends Happened>({ items, cursorId }: Feed<T>) =>
  items.findIndex(({ id }) => id === cursorId);

export const underCursor = <T extends Happened>(feed: Feed<T>): T | undefined => feed.items[indexOf(feed)];

/** @param by negative: towards what is older. Arriving at the newest follows again. */
export function moved<T extends Happened>(feed: Feed<T>, by: number): Feed<T> {
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

/** Looks closely at the one under the cursor, which is not left for what comes; or closes it. */
export function toggled<T extends Happened>(feed: Feed<T>): Feed<T> {
  const item = underCursor(feed);
  if (feed.opened === null) return item ? { ...feed, opened: item, isFollowing: false } : feed;
  const isAtEnd = item !== undefined && item.id === feed.items.at(-1)?.id;
  return { ...feed, opened: null, isFollowing: isAtEnd };
}

/** With another filter over all that is here: what was held back is looked at again. */
export function refiltered<T extends Happened>(feed: Feed<T>, filter: string, matches: (item: T) => boolean): Feed<T> {
  const { all } = merged(feed.aside, feed.items);
  const items = all.filter(matches);
  const aside = all.filter((item) => !matches(item)).slice(-MOST_KEPT);
  return placed({ ...feed, filter, items, aside, unseen: 0 });
}

/** Those that the filter lets through are shown; the others are held back. */
export function sifted<T extends Happened>(feed: Feed<T>, items: readonly T[], matches: (item: T) => boolean): Feed<T> {
  const shown = items.filter(matches);
  const others = items.filter((item) => !matches(item));
  const next = others.length === 0 ? feed : { ...feed, aside: [...feed.aside, ...others].slice(-MOST_KEPT) };
  return shown.length === 0 ? next : arrived(next, shown);
}

/** The cursor is at the newest while it is followed, and never nowhere. */
function placed<T extends Happened>(feed: Feed<T>): Feed<T> {
  const newest = feed.items.at(-1)?.id ?? null;
  if (feed.isFollowing) return { ...feed, cursorId: newest };
  return indexOf(feed) === -1 ? { ...feed, cursorId: feed.items[0]?.id ?? null } : feed;
}

/** The items to be seen: `rows` of them around the cursor, the newest at the bottom. */
export function seen<T extends Happened>(feed: Feed<T>, rows: number): { items: readonly T[]; from: number } {
  const last = feed.items.length;
  const index = feed.isFollowing ? last - 1 : indexOf(feed);
  // A third of the screen below the cursor, as far as there is that much.
  const below = Math.floor(rows / 3);
  const end = Math.min(last, Math.max(rows, index + 1 + (feed.isFollowing ? 0 : below)));
  const from = Math.max(0, end - rows);
  return { items: feed.items.slice(from, end), from };
}
