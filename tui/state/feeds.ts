/**
 * The two feeds, audit records and events: both are streamed, and older items are loaded page by page, newest first. The daemon filters
 * them, and what its API cannot express of a filter for events is filtered here. What is on the screen stays there as long as it
 * matches, whatever the daemon still has.
 *
 * After a filter was changed, or when the stream was interrupted, pages are loaded until they reach the items that are already known, so
 * that the list has no hidden gap.
 */
import { parseFilter } from '../../console/query/filter.js';
import { mayRequest } from './connection.js';
import type { DataRequest, Stream, Streamed } from './exchange.js';
import {
  detailToggled,
  emptyFeed,
  type Feed,
  type FeedItem,
  isFullSince,
  joinedAt,
  MAX_SCROLLBACK,
  moved,
  olderQuery,
  refiltered,
  restartedAt,
  type Search,
  withHiddenItems,
  withinLimit,
  withNewItems,
  withOlderItems,
} from './feed.js';
import { feedRows } from './rows.js';
import { knownNames, type State, type Transition, view, withMessage, loads } from './state.js';
import * as token from './token.js';

export type FeedName = 'audit' | 'events';
/** Parameters of a request. */
type Query = Readonly<Record<string, string | undefined>>;
type Items = Feed<FeedItem>;

/** Pages that are loaded without the operator asking for each: of events that the daemon filters, each covers 20,000. */
const MAX_PAGES = 10;
/** The stream of events begins with these, so that none is missed between the newest page and the stream. */
const OVERLAP = '5s';

interface Kind {
  /** Items per page. */
  page: string;
  /** The stream of new items that a query selects; null: there is none, and the newest page is polled. */
  stream(query: Query): Stream | null;
  /** Whether a filter can be applied to what is in memory. */
  isFilteredHere: boolean;
}

const KINDS: Record<FeedName, Kind> = {
  audit: { page: '200', stream: auditStream, isFilteredHere: false },
  events: {
    page: '300',
    stream: (query) => ({ of: 'events', query: { ...query, since: OVERLAP } }),
    isFilteredHere: true,
  },
};

/** The stream of records supports no batches, no words and no times. */
function auditStream({ action, actor, project_id, token_id, outcome, batch, q, since, until }: Query): Stream | null {
  if ((batch ?? q) !== undefined || since !== undefined || until !== undefined) return null;
  const given = Object.entries({ action, actor, project_id, token_id, outcome }).filter(
    ([, value]) => value !== undefined,
  );
  return { of: 'audit', query: Object.fromEntries(given) };
}

const feedOf = (state: State, of: FeedName): Items => state[of];
const withFeed = (state: State, of: FeedName, feed: Items): State => ({ ...state, [of]: feed });

/** Each kind has items of its own type, which the compiler cannot follow through a variable name. */
function filterOf(state: State, of: FeedName, text = state[of].filter) {
  const { query, isComplete, matches } = parseFilter(text, of, knownNames(state));
  return { query: query as Query, isComplete, matches: matches as (item: FeedItem) => boolean };
}

/** The streams that the current view needs: none while its filter is not valid. */
export function streams(state: State): Stream[] {
  const shown = view(state);
  if (shown.screen === 'token') return token.streams(shown.id);
  if (shown.screen !== 'events' && shown.screen !== 'audit') return [];
  const { query, isComplete } = filterOf(state, shown.screen);
  const stream = isComplete ? KINDS[shown.screen].stream(query) : null;
  return stream === null ? [] : [stream];
}

/** The newest page, unless the stream already delivers new items. */
export function dataRequests(state: State, of: FeedName): DataRequest[] {
  const { isKnown, search } = state[of];
  const newest = isKnown || search !== null ? [] : newestPage(state, of);
  return of === 'audit' ? [...newest, ...memberRequests(state)] : newest;
}

/** The members of the batch whose details are open. */
export function memberRequests({ audit: { opened } }: State): DataRequest[] {
  return opened?.batch != null && opened.count !== null ? [{ of: 'members', batch: opened.batch }] : [];
}

function newestQuery(state: State, of: FeedName): Query | null {
  const { query, isComplete } = filterOf(state, of);
  if (!isComplete) return null;
  return { ...query, limit: KINDS[of].page, ...(isGrouped(of, query) && { group: 'batch' }) };
}

/** The audit log has a row for each batch, unless the operator has asked for the members of one. */
const isGrouped = (of: FeedName, query: Query): boolean => of === 'audit' && query.batch === undefined;

/** A row of a batch stays the same row while the batch grows. */
const rowOf = (item: FeedItem): FeedItem => ({ ...item, id: item.batch ?? item.id });

const requestOf = (of: FeedName, query: Query): DataRequest => ({ of, query });

function newestPage(state: State, of: FeedName): DataRequest[] {
  const query = newestQuery(state, of);
  return query === null ? [] : [requestOf(of, query)];
}

/** The stream is not open yet, or not any more: later items may be missing. */
function interrupted(feed: Items): Items {
  return feed.isKnown ? { ...feed, isKnown: false, gapFrom: feed.items.at(-1)?.time ?? null } : feed;
}

/** The set of streams changes, and none of the new ones is open yet. */
export function withStreamsOpening(state: State): State {
  const opening = (of: FeedName) => ({ ...interrupted(feedOf(state, of)), stream: 'opening' as const });
  return withFeed(withFeed(state, 'audit', opening('audit')), 'events', opening('events'));
}

/** Once the stream is open, the newest page and the stream together have all items. */
export function streamChanged(state: State, of: FeedName, stream: 'open' | 'lost'): Transition {
  const feed = feedOf(state, of);
  if (stream === 'lost') return [withFeed(state, of, { ...interrupted(feed), stream })];
  const next = withFeed(state, of, { ...feed, stream });
  return [next, ...loads(newestPage(next, of))];
}

const older = (state: State, of: FeedName): Query | null => olderQuery(feedOf(state, of), newestQuery(state, of));

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

/** @param page newest first, as the API lists them. */
export function received(
  state: State,
  of: FeedName,
  query: Query,
  page: { items: readonly FeedItem[]; next: string | null },
): Transition {
  const items = page.items.map((item) => (query.group === undefined ? item : rowOf(item))).reverse();
  const { feed, shown } = withHiddenItems(feedOf(state, of), items, filterOf(state, of).matches);
  const { search, gapFrom, isKnown } = feed;
  if (search !== null && isSame(query, search.query))
    return searched(state, of, { ...withOlderItems(feed, shown, page.next), isKnown }, search, items);
  // A paused list does not change, unless the operator moves up.
  if (!isSame(query, newestQuery(state, of)) || state.isPaused) return [state];
  if (isKnown) return [withFeed(state, of, withNewItems(feed, shown))];
  const untilTime = gapFrom ?? feed.items[0]?.time ?? null;
  const begun = { query, isFromNewest: true, untilTime, needed: feedRows(state, feed), pagesLeft: MAX_PAGES };
  return searched(state, of, { ...withOlderItems(feed, shown, page.next), isKnown }, begun, items);
}

/** A page was added. Loads the next one if the search is not over. @param page what the daemon sent, oldest first. */
function searched(state: State, of: FeedName, feed: Items, search: Search, page: readonly FeedItem[]): Transition {
  const { isFromNewest, untilTime, needed, pagesLeft } = search;
  const first = page[0]?.time;
  const hasReached = feed.older === null || untilTime === null || (first !== undefined && first < untilTime);
  const hasEnough = feed.older === null || feed.items.length >= Math.min(needed, MAX_SCROLLBACK);
  const isFull = first !== undefined && isFullSince(feed, first);
  if ((hasReached && hasEnough) || isFull) return [ended(state, of, withinLimit(joinedAt(feed, first)), isFromNewest)];
  // What is before a gap can be loaded again from there.
  if (pagesLeft === 0)
    return [ended(state, of, hasReached || first === undefined ? feed : restartedAt(feed, first), isFromNewest)];
  return searchedOn(withFeed(state, of, feed), of, { ...search, pagesLeft: pagesLeft - 1 });
}

function searchedOn(state: State, of: FeedName, search: Omit<Search, 'query'>): Transition {
  const query = older(state, of);
  const feed = feedOf(state, of);
  if (query === null || !mayRequest(state)) return [ended(state, of, feed, false)];
  const next = withFeed(state, of, { ...feed, isReadingOlder: true, search: { ...search, query } });
  return [next, ...loads([requestOf(of, query)])];
}

/** Whether there is nothing to open yet, but there may be soon. */
export const isLoading = ({ items, isLoaded, search }: Items): boolean =>
  items.length === 0 && (!isLoaded || search !== null);

/** Opens or closes the details. An operator who types faster than the first page is loaded gets the newest item. */
export function toggled(state: State, of: FeedName): State {
  const feed = feedOf(state, of);
  const isEarly = feed.opened === null && isLoading(feed);
  return withFeed(state, of, isEarly ? { ...feed, opensNewest: !feed.opensNewest } : detailToggled(feed));
}

const openedIfWanted = (feed: Items): Items =>
  feed.opensNewest && feed.items.length > 0 ? detailToggled({ ...feed, opensNewest: false }) : feed;

/** The search is over. @param isComplete no item since the first one is missing; without a stream, that is true only now. */
function ended(state: State, of: FeedName, feed: Items, isComplete: boolean): State {
  const next = { ...openedIfWanted(feed), opensNewest: false, isReadingOlder: false, search: null };
  if (!isComplete) return withFeed(state, of, next);
  const joined = { ...next, isKnown: true, isLoaded: true };
  return withFeed(state, of, feed.stream === 'open' ? joined : interrupted(joined));
}

/** A page could not be loaded: a search ends. */
export function pageFailed(state: State, of: FeedName, query: Query): State {
  const feed = feedOf(state, of);
  if (feed.search === null || !isSame(query, feed.search.query)) return state;
  return withFeed(state, of, { ...feed, isReadingOlder: false, search: null });
}

export function streamed(state: State, all: readonly Streamed[]): State {
  const itemsOf = <K extends Streamed['of']>(of: K) =>
    all.flatMap((it) => (it.of === of ? [it.item as Extract<Streamed, { of: K }>['item']] : []));
  const next = withStreamed(withStreamed(state, 'audit', itemsOf('audit')), 'events', itemsOf('events'));
  const own = itemsOf('tokenEvents');
  return own.length === 0 ? next : token.used(next, own);
}

/** A paused list does not change. What occurs meanwhile is loaded when it is resumed. */
function withStreamed(state: State, of: FeedName, items: readonly FeedItem[]): State {
  if (items.length === 0 || state.isPaused) return state;
  const { matches } = filterOf(state, of);
  const rows = of === 'audit' ? items.map(rowOf) : items;
  const { feed, shown } = withHiddenItems(feedOf(state, of), rows, matches);
  const known = new Set(feed.items.map(({ id }) => id));
  const fresh = shown.filter(({ id, batch }) => batch == null || (!known.has(id) && known.add(id)));
  // A batch has got more members. The daemon knows how many.
  const next = fresh.length === shown.length ? feed : interrupted(feed);
  if (fresh.length === 0) return withFeed(state, of, next);
  return withFeed(state, of, openedIfWanted({ ...withNewItems(next, fresh), isKnown: next.isKnown }));
}

/** Moves the cursor. At the first item, older ones are loaded. */
export function movedBy(state: State, of: FeedName, by: number): Transition {
  const next = withFeed(state, of, moved(feedOf(state, of), by));
  const { items, cursorId, search } = feedOf(next, of);
  const isAtBeginning = by < 0 && cursorId === (items[0]?.id ?? null);
  const members = of === 'audit' ? loads(memberRequests(next)) : [];
  if (!isAtBeginning || older(next, of) === null || search !== null) return [next, ...members];
  if (items.length >= MAX_SCROLLBACK)
    return [withMessage(next, 'Older ones are found with a filter, such as until:7d')];
  const needed = items.length + 1;
  return searchedOn(next, of, { isFromNewest: false, untilTime: null, needed, pagesLeft: MAX_PAGES });
}

/** Applies a filter to what is on the screen, if it can be applied here, and loads what the daemon has. */
export function filtered(state: State, of: FeedName, filter: string): Transition {
  const feed = feedOf(state, of);
  const kept = KINDS[of].isFilteredHere
    ? refiltered(feed, filter, filterOf(state, of, filter).matches)
    : { ...emptyFeed<FeedItem>(filter), opened: feed.opened };
  const next = withFeed(state, of, {
    ...kept,
    isLoaded: false,
    isKnown: false,
    opensNewest: false,
    gapFrom: kept.items[0]?.time ?? null,
    older: null,
    isTruncated: false,
    isReadingOlder: false,
    search: null,
  });
  return [next, ...loads(newestPage(next, of))];
}
