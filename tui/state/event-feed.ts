/**
 * The feed of events. The daemon filters the stored events and the stream, and what its API cannot express is filtered here. Events that
 * are on the screen stay there as long as they match, whatever the daemon still has.
 *
 * Stored events come page by page, newest first. After a filter was changed, or when the stream was interrupted, pages are loaded until
 * they reach the events that are already known, so that the list has no hidden gap.
 */
import { parseFilter } from '../../console/query/filter.js';
import type { EventQuery, WireEvent } from '../../daemon/api/contract.js';
import { mayRequest } from './connection.js';
import type { DataRequest, Effect, Stream } from './exchange.js';
import {
  olderQuery,
  detailToggled,
  type Feed,
  isFullSince,
  MAX_SCROLLBACK,
  moved,
  refiltered,
  restartedAt,
  type Search,
  withHiddenItems,
  withinLimit,
  withNewItems,
  withOlderItems,
} from './feed.js';
import { feedRows } from './rows.js';
import { type State, type Transition, withMessage } from './state.js';

const PAGE = '300';
/** Pages that are loaded without the operator asking for each: for a filter that the daemon evaluates, each covers 20,000 events. */
const MAX_PAGES = 10;
/** The stream begins with these events, so that none is missed between the newest page and the stream. */
const OVERLAP = '5s';

type Events = Feed<WireEvent>;

const filterOf = (state: State, text = state.events.filter) =>
  parseFilter(text, 'events', { projects: state.projects.all ?? [] });

const withEvents = (state: State, events: Events): State => ({ ...state, events });

/** The streams of the screen: none while the filter is not valid. */
export function eventStreams(state: State): Stream[] {
  const { query, isComplete } = filterOf(state);
  return isComplete ? [{ of: 'events', query: { ...query, since: OVERLAP } }] : [];
}

/** The newest page, unless the stream already delivers new events. */
export function dataRequests(state: State): DataRequest[] {
  const { isKnown, search } = state.events;
  return isKnown || search !== null ? [] : newestPage(state);
}

function newestQuery(state: State): EventQuery | null {
  const { query, isComplete } = filterOf(state);
  return isComplete ? { ...query, limit: PAGE } : null;
}

function newestPage(state: State): DataRequest[] {
  const query = newestQuery(state);
  return query === null ? [] : [{ of: 'events', query }];
}

const loads = (requests: readonly DataRequest[]) => requests.map((request): Effect => ({ do: 'load', request }));

/** The stream is not open yet, or not any more: later events may be missing. */
function interrupted(events: Events): Events {
  return events.isKnown ? { ...events, isKnown: false, gapFrom: events.items.at(-1)?.time ?? null } : events;
}

export const streamOpening = (events: Events): Events => ({ ...interrupted(events), stream: 'opening' });

/** Once the stream is open, the newest page and the stream together have all events. */
export function streamChanged(state: State, stream: 'open' | 'lost'): Transition {
  const { events } = state;
  if (stream === 'lost') return [withEvents(state, { ...interrupted(events), stream })];
  const next = withEvents(state, { ...events, stream });
  return [next, ...loads(newestPage(next))];
}

const olderEvents = (state: State): EventQuery | null => olderQuery(state.events, newestQuery(state));

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

/** @param page newest first, as the API lists them. */
export function eventsReceived(
  state: State,
  query: EventQuery,
  page: { items: readonly WireEvent[]; next: string | null },
): Transition {
  const items = [...page.items].reverse();
  const { feed, shown } = withHiddenItems(state.events, items, filterOf(state).matches);
  const { search, gapFrom, isKnown } = feed;
  if (search !== null && isSame(query, search.query))
    return searched(state, { ...withOlderItems(feed, shown, page.next), isKnown }, search, items);
  // A paused list does not change, unless the operator moves up.
  if (!isSame(query, newestQuery(state)) || state.isPaused) return [state];
  if (isKnown) return [withEvents(state, withNewItems(feed, shown))];
  const untilTime = gapFrom ?? feed.items[0]?.time ?? null;
  const begun = { query, isFromNewest: true, untilTime, needed: feedRows(state, feed), pagesLeft: MAX_PAGES };
  return searched(state, { ...withOlderItems(feed, shown, page.next), isKnown }, begun, items);
}

/** A page was added. Loads the next one if the search is not over. @param page what the daemon sent, oldest first. */
function searched(state: State, feed: Events, search: Search, page: readonly WireEvent[]): Transition {
  const { older, items } = feed;
  const { isFromNewest, untilTime, needed, pagesLeft } = search;
  const first = page[0]?.time;
  const hasReached = older === null || untilTime === null || (first !== undefined && first < untilTime);
  const hasEnough = older === null || items.length >= Math.min(needed, MAX_SCROLLBACK);
  const isFull = first !== undefined && isFullSince(feed, first);
  if ((hasReached && hasEnough) || isFull) return [ended(state, withinLimit(feed), isFromNewest)];
  // What is before a gap can be loaded again from there.
  if (pagesLeft === 0)
    return [ended(state, hasReached || first === undefined ? feed : restartedAt(feed, first), isFromNewest)];
  return searchedOn(withEvents(state, feed), { ...search, pagesLeft: pagesLeft - 1 });
}

function searchedOn(state: State, search: Omit<Search, 'query'>): Transition {
  const query = olderEvents(state);
  if (query === null || !mayRequest(state)) return [ended(state, state.events, false)];
  const next = withEvents(state, { ...state.events, isReadingOlder: true, search: { ...search, query } });
  return [next, ...loads([{ of: 'events', query }])];
}

/** Whether there is nothing to open yet, but there may be soon. */
export const isLoading = ({ items, isKnown, search }: Events): boolean =>
  items.length === 0 && (!isKnown || search !== null);

/** Opens or closes the details. An operator who types faster than the first page is loaded gets the newest event. */
export function eventToggled(state: State): State {
  const { events } = state;
  const isEarly = events.opened === null && isLoading(events);
  return withEvents(state, isEarly ? { ...events, opensNewest: true } : detailToggled(events));
}

const openedIfWanted = (feed: Events): Events =>
  feed.opensNewest && feed.items.length > 0 ? detailToggled({ ...feed, opensNewest: false }) : feed;

/** The search is over. @param isComplete no event since the first one is missing; without a stream, that is true only now. */
function ended(state: State, feed: Events, isComplete: boolean): State {
  const next = { ...openedIfWanted(feed), opensNewest: false, isReadingOlder: false, search: null };
  if (!isComplete) return withEvents(state, next);
  const joined = { ...next, isKnown: true };
  return withEvents(state, feed.stream === 'open' ? joined : interrupted(joined));
}

/** A page could not be loaded. */
export function pageFailed(state: State, query: EventQuery): State {
  const { events } = state;
  if (events.search !== null && isSame(query, events.search.query))
    return withEvents(state, { ...events, isReadingOlder: false, search: null });
  return state;
}

/** A paused list does not change. What occurs meanwhile is loaded when it is resumed. */
export function eventsStreamed(state: State, items: readonly WireEvent[]): State {
  if (items.length === 0 || state.isPaused) return state;
  const { feed, shown } = withHiddenItems(state.events, items, filterOf(state).matches);
  if (shown.length === 0) return withEvents(state, feed);
  return withEvents(state, openedIfWanted({ ...withNewItems(feed, shown), isKnown: feed.isKnown }));
}

/** Moves the cursor. At the first event, older ones are loaded. */
export function eventsMovedBy(state: State, by: number): Transition {
  const next = withEvents(state, moved(state.events, by));
  const { events } = next;
  const isAtBeginning = by < 0 && events.cursorId === (events.items[0]?.id ?? null);
  if (!isAtBeginning || olderEvents(next) === null || events.search !== null) return [next];
  if (events.items.length >= MAX_SCROLLBACK) return [withMessage(next, 'A filter finds older events')];
  return searchedOn(next, {
    isFromNewest: false,
    untilTime: null,
    needed: events.items.length + 1,
    pagesLeft: MAX_PAGES,
  });
}

/** Applies a filter to what is on the screen, and loads what the daemon has. */
export function eventsFiltered(state: State, filter: string): Transition {
  const { matches } = filterOf(state, filter);
  const feed = refiltered(state.events, filter, matches);
  const unknown = {
    isKnown: false,
    opensNewest: false,
    gapFrom: feed.items[0]?.time ?? null,
    older: null,
    isTruncated: false,
  };
  const next = withEvents(state, { ...feed, ...unknown, isReadingOlder: false, search: null });
  return [next, ...loads(newestPage(next))];
}
