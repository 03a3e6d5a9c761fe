/** Audit and events: both are followed as they come, audit records can also be read further back. */
import type { AuditQuery } from '../../daemon/api/contract.js';
import type { Effect, Question, Stream, Streamed } from './exchange.js';
import { arrived, emptyFeed, moved, readOlder } from './feed.js';
import { parseFilter } from './filter.js';
import { type State, type Step, view } from './state.js';
import { used } from './token.js';

type FeedName = 'audit' | 'events';
const PAGE = '200';

const known = ({ projects, nowMs }: State) => ({ projects: projects.all ?? [], nowMs });
const auditFilter = (state: State) => parseFilter(state.audit.filter, 'audit', known(state));
const eventFilter = (state: State) => parseFilter(state.events.filter, 'events', known(state));

/** Records cannot be followed by words or times, only read. */
export function isFollowable(state: State): boolean {
  const { q, since, until } = auditFilter(state).query;
  return q === undefined && since === undefined && until === undefined;
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
  if (shown.screen === 'events') return [{ of: 'events', query: eventFilter(state).query }];
  if (shown.screen === 'audit' && isFollowable(state)) return [auditStream(state)];
  return [];
}

/** What of a feed is to be read now: the newest page, unless the stream brings what comes. */
export function questions(state: State): Question[] {
  const { audit } = state;
  if (audit.isKnown && audit.stream === 'open' && isFollowable(state)) return [];
  return [{ of: 'audit', query: { ...auditFilter(state).query, limit: PAGE } }];
}

export function auditCame(
  state: State,
  query: AuditQuery,
  page: { items: readonly State['audit']['items'][number][]; next: string | null },
): State {
  const { audit } = state;
  if (query.cursor !== undefined) {
    if (query.cursor !== audit.older) return state;
    return { ...state, audit: readOlder(audit, page.items, page.next) };
  }
  const first = audit.isKnown ? arrived(audit, [...page.items].reverse()) : readOlder(audit, page.items, page.next);
  return { ...state, audit: { ...first, isKnown: true } };
}

export function streamed(state: State, all: readonly Streamed[]): State {
  const audit = all.flatMap((it) => (it.of === 'audit' ? [it.item] : []));
  const { matches } = eventFilter(state);
  const events = all.flatMap((it) => (it.of === 'events' && matches(it.item) ? [it.item] : []));
  const own = all.flatMap((it) => (it.of === 'tokenEvents' ? [it.item] : []));
  const next: State = {
    ...state,
    audit: audit.length > 0 ? arrived(state.audit, audit) : state.audit,
    // A paused list stands still; what came meanwhile is not made up for.
    events: events.length > 0 && !state.isPaused ? { ...arrived(state.events, events), isKnown: true } : state.events,
  };
  return own.reduce(used, next);
}

/** Up and down in a feed; at its beginning what is older is read. */
export function movedBy(state: State, of: FeedName, by: number): Step {
  const next: State =
    of === 'audit' ? { ...state, audit: moved(state.audit, by) } : { ...state, events: moved(state.events, by) };
  const { audit } = next;
  const isAtBeginning = of === 'audit' && audit.cursorId === audit.items[0]?.id;
  if (!isAtBeginning || audit.older === null || audit.isReadingOlder) return [next];
  const query = { ...auditFilter(next).query, limit: PAGE, cursor: audit.older };
  return [
    { ...next, audit: { ...audit, isReadingOlder: true } },
    { do: 'ask', question: { of: 'audit', query } },
  ];
}

export function filtered(state: State, of: FeedName, filter: string): Step {
  const next: State = of === 'audit' ? { ...state, audit: emptyFeed(filter) } : { ...state, events: emptyFeed(filter) };
  const asked = of === 'audit' ? questions(next) : [];
  return [next, ...asked.map((question): Effect => ({ do: 'ask', question }))];
}
