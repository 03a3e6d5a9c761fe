/** Audit and events: both are followed as they come, audit records can also be read further back. */
import type { AuditQuery, WireAuditRecord } from '../../daemon/api/contract.js';
import { mayAsk } from './connection.js';
import type { Effect, Question, Stream, Streamed } from './exchange.js';
import { arrived, emptyFeed, MOST_READ, moved, readOlder, refiltered, sifted } from './feed.js';
import { parseFilter } from './filter.js';
import { saying, type State, type Step, view } from './state.js';
import { used } from './token.js';

type FeedName = 'audit' | 'events';
const PAGE = '200';

const known = ({ projects }: State) => ({ projects: projects.all ?? [] });
const auditFilter = (state: State) => parseFilter(state.audit.filter, 'audit', known(state));
const eventFilter = (state: State) => parseFilter(state.events.filter, 'events', known(state));

/** Records cannot be followed by words or times, only read. */
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

/** What is streamed for the view that is shown. */
export function streams(state: State): Stream[] {
  const shown = view(state);
  if (shown.screen === 'token') return [{ of: 'tokenEvents', id: shown.id }];
  // All of them, whatever the filter: another filter is to find what has come so far, and nothing is missed in between.
  if (shown.screen === 'events') return [{ of: 'events', query: {} }];
  if (shown.screen === 'audit' && isFollowable(state)) return [auditStream(state)];
  return [];
}

/** Others are followed from now on than before: none of them is open yet. */
export const unopened = (state: State): State => ({
  ...state,
  audit: { ...state.audit, stream: 'opening' },
  events: { ...state.events, stream: 'opening' },
});

export function streamIs(state: State, of: FeedName, stream: 'open' | 'lost'): Step {
  if (of === 'events') {
    const { events } = state;
    return [{ ...state, events: { ...events, stream, isKnown: events.isKnown || stream === 'open' } }];
  }
  // What was recorded between the last page and the stream is in neither.
  const asked = stream === 'open' && view(state).screen === 'audit' ? newest(state) : [];
  const next: State = { ...state, audit: { ...state.audit, stream } };
  return [next, ...asked.map((question): Effect => ({ do: 'ask', question }))];
}

function newest(state: State): Question[] {
  const { query, isComplete } = auditFilter(state);
  return isComplete ? [{ of: 'audit', query: { ...query, limit: PAGE } }] : [];
}

/** What of a feed is to be read now: the newest page, unless the stream brings what comes. */
export function questions(state: State): Question[] {
  const { audit } = state;
  return audit.isKnown && audit.stream === 'open' && isFollowable(state) ? [] : newest(state);
}

/** What asks for records older than the first; null: there are none, or nobody can say. */
function olderQuery(state: State): AuditQuery | null {
  const { older, isCut, items } = state.audit;
  const { query } = auditFilter(state);
  if (older !== null) return { ...query, limit: PAGE, cursor: older };
  const [first] = items;
  // Up to and with its millisecond: others may have happened in the same one.
  return isCut && first ? { ...query, limit: PAGE, until: new Date(Date.parse(first.time) + 1).toISOString() } : null;
}

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

/** @param page newest first, as the API lists them. */
export function auditCame(
  state: State,
  query: AuditQuery,
  page: { items: readonly WireAuditRecord[]; next: string | null },
): State {
  const { audit } = state;
  const items = [...page.items].reverse();
  if (audit.isReadingOlder && isSame(query, olderQuery(state))) {
    return { ...state, audit: readOlder(audit, items, page.next) };
  }
  const isNewest = newest(state).some((question) => question.of === 'audit' && isSame(question.query, query));
  if (!isNewest) return { ...state, audit: audit.isReadingOlder ? { ...audit, isReadingOlder: false } : audit };
  const knownIds = new Set(audit.items.map(({ id }) => id));
  const joins = audit.isKnown && (page.next === null || items.some(({ id }) => knownIds.has(id)));
  if (joins) return { ...state, audit: arrived(audit, items) };
  // More has happened than one page holds: between it and what is known something would be missing.
  const { filter, stream, isFollowing, opened } = audit;
  const anew = { ...emptyFeed<WireAuditRecord>(filter), stream, isFollowing, opened };
  return { ...state, audit: readOlder(anew, items, page.next) };
}

export function streamed(state: State, all: readonly Streamed[]): State {
  const audit = all.flatMap((it) => (it.of === 'audit' ? [it.item] : []));
  const events = all.flatMap((it) => (it.of === 'events' ? [it.item] : []));
  const own = all.flatMap((it) => (it.of === 'tokenEvents' ? [it.item] : []));
  const next: State = {
    ...state,
    // Before the first page was read nobody can say whether anything is missing; that page has them as well.
    audit: audit.length > 0 && state.audit.isKnown ? arrived(state.audit, audit) : state.audit,
    // A paused list stands still; what came meanwhile is not made up for.
    events:
      events.length > 0 && !state.isPaused ? sifted(state.events, events, eventFilter(state).matches) : state.events,
  };
  return own.reduce(used, next);
}

/** Up and down in a feed; at its beginning what is older is read. */
export function movedBy(state: State, of: FeedName, by: number): Step {
  if (of === 'events') return [{ ...state, events: moved(state.events, by) }];
  const next: State = { ...state, audit: moved(state.audit, by) };
  const { audit } = next;
  const isAtBeginning = by < 0 && audit.cursorId === audit.items[0]?.id;
  const query = olderQuery(next);
  if (!isAtBeginning || query === null || audit.isReadingOlder || !mayAsk(next)) return [next];
  if (audit.items.length >= MOST_READ) return [saying(next, 'Older ones are found with a filter: until:7d')];
  return [
    { ...next, audit: { ...audit, isReadingOlder: true } },
    { do: 'ask', question: { of: 'audit', query } },
  ];
}

export function filtered(state: State, of: FeedName, filter: string): Step {
  if (of === 'events') {
    const { matches } = parseFilter(filter, 'events', known(state));
    return [{ ...state, events: refiltered(state.events, filter, matches) }];
  }
  const next: State = { ...state, audit: { ...emptyFeed(filter), opened: state.audit.opened } };
  return [next, ...questions(next).map((question): Effect => ({ do: 'ask', question }))];
}
