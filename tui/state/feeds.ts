/** The audit feed, and which feed a change of the state concerns. Both feeds are streamed, and older items can be loaded. */
import type { AuditQuery, WireAuditRecord } from '../../daemon/api/contract.js';
import { mayRequest } from './connection.js';
import type { Effect, DataRequest, Stream, Streamed } from './exchange.js';
import * as events from './event-feed.js';
import { olderQuery, withNewItems, emptyFeed, MAX_SCROLLBACK, moved, withOlderItems } from './feed.js';
import { parseFilter } from '../../console/query/filter.js';
import { withMessage, type State, type Transition, view } from './state.js';
import * as token from './token.js';

type FeedName = 'audit' | 'events';
const PAGE = '200';

const known = ({ projects }: State) => ({ projects: projects.all ?? [] });
const auditFilter = (state: State) => parseFilter(state.audit.filter, 'audit', known(state));

/** The audit stream supports no words and no times: with these filters the records are polled. */
export function isFollowable(state: State): boolean {
  const { query, isComplete } = auditFilter(state);
  return isComplete && query.q === undefined && query.since === undefined && query.until === undefined;
}

function auditStream(state: State): Stream {
  const { action, actor, project_id, token_id, outcome } = auditFilter(state).query;
  const given = Object.entries({ action, actor, project_id, token_id, outcome }).filter(
    ([, value]) => value !== undefined,
  );
  return { of: 'audit', query: Object.fromEntries(given) };
}

/** The streams that the current view needs. */
export function streams(state: State): Stream[] {
  const shown = view(state);
  if (shown.screen === 'token') return token.streams(shown.id);
  if (shown.screen === 'events') return events.eventStreams(state);
  if (shown.screen === 'audit' && isFollowable(state)) return [auditStream(state)];
  return [];
}

/** The set of streams changes, and none of the new ones is open yet. */
export const withStreamsOpening = (state: State): State => ({
  ...state,
  audit: { ...state.audit, stream: 'opening' },
  events: events.streamOpening(state.events),
});

export function streamChanged(state: State, of: FeedName, stream: 'open' | 'lost'): Transition {
  if (of === 'events') return events.streamChanged(state, stream);
  // Records written between the last page and the start of the stream are in neither, so the newest page is requested.
  const asked = stream === 'open' && view(state).screen === 'audit' ? newestPage(state) : [];
  const next: State = { ...state, audit: { ...state.audit, stream } };
  return [next, ...asked.map((request): Effect => ({ do: 'load', request }))];
}

function newestQuery(state: State): AuditQuery | null {
  const { query, isComplete } = auditFilter(state);
  return isComplete ? { ...query, limit: PAGE } : null;
}

function newestPage(state: State): DataRequest[] {
  const query = newestQuery(state);
  return query === null ? [] : [{ of: 'audit', query }];
}

/** The newest page, unless the stream already delivers new records. */
export function dataRequests(state: State): DataRequest[] {
  const { audit } = state;
  return audit.isKnown && audit.stream === 'open' && isFollowable(state) ? [] : newestPage(state);
}

const olderRecords = (state: State): AuditQuery | null => olderQuery(state.audit, newestQuery(state));

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

/** @param page newest first, as the API lists them. */
export function auditReceived(
  state: State,
  query: AuditQuery,
  page: { items: readonly WireAuditRecord[]; next: string | null },
): State {
  const { audit } = state;
  const items = [...page.items].reverse();
  if (audit.isReadingOlder && isSame(query, olderRecords(state))) {
    return { ...state, audit: withOlderItems(audit, items, page.next) };
  }
  if (!isSame(query, newestQuery(state)))
    return { ...state, audit: audit.isReadingOlder ? { ...audit, isReadingOlder: false } : audit };
  const knownIds = new Set(audit.items.map(({ id }) => id));
  const joins = audit.isKnown && (page.next === null || items.some(({ id }) => knownIds.has(id)));
  if (joins) return { ...state, audit: withNewItems(audit, items) };
  // More new records than one page holds: the feed starts again from this page, so that it has no hidden gap.
  const { filter, stream, isFollowing, opened } = audit;
  const restarted = { ...emptyFeed<WireAuditRecord>(filter), stream, isFollowing, opened };
  return { ...state, audit: withOlderItems(restarted, items, page.next) };
}

export function streamed(state: State, all: readonly Streamed[]): State {
  const audit = all.flatMap((it) => (it.of === 'audit' ? [it.item] : []));
  const ofAll = all.flatMap((it) => (it.of === 'events' ? [it.item] : []));
  const own = all.flatMap((it) => (it.of === 'tokenEvents' ? [it.item] : []));
  // Before the first page is loaded it is not known whether records are missing. That page will contain these too.
  const isAdded = audit.length > 0 && state.audit.isKnown;
  const next = events.eventsStreamed(isAdded ? { ...state, audit: withNewItems(state.audit, audit) } : state, ofAll);
  return own.length === 0 ? next : token.used(next, own);
}

/** Moves the cursor in a feed. At its start, older records are loaded. */
export function movedBy(state: State, of: FeedName, by: number): Transition {
  if (of === 'events') return events.eventsMovedBy(state, by);
  const next: State = { ...state, audit: moved(state.audit, by) };
  const { audit } = next;
  const isAtBeginning = by < 0 && audit.cursorId === audit.items[0]?.id;
  const query = olderRecords(next);
  if (!isAtBeginning || query === null || audit.isReadingOlder || !mayRequest(next)) return [next];
  if (audit.items.length >= MAX_SCROLLBACK) return [withMessage(next, 'Older ones are found with a filter: until:7d')];
  return [
    { ...next, audit: { ...audit, isReadingOlder: true } },
    { do: 'load', request: { of: 'audit', query } },
  ];
}

export function filtered(state: State, of: FeedName, filter: string): Transition {
  if (of === 'events') return events.eventsFiltered(state, filter);
  const next: State = { ...state, audit: { ...emptyFeed(filter), opened: state.audit.opened } };
  return [next, ...dataRequests(next).map((request): Effect => ({ do: 'load', request }))];
}
