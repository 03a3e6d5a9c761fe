/** Keys of the feeds: audit and events. */
import { listCommand } from '../../console/query/command.js';
import { termsOf } from '../../console/query/terms.js';
import { REQUEST_EVENT_KIND } from '../../daemon/api/vocabulary.js';
import { curlCommand } from '../../console/query/command.js';
import { underCursor } from '../state/feed.js';
import { isLoading, memberRequests, toggled } from '../state/feeds.js';
import { applied } from '../state/filtering.js';
import * as navigation from '../state/navigation.js';
import { deedOf, mayShow, whyNotPermitted } from '../state/permitted.js';
import { refreshed } from '../state/refreshing.js';
import { andThen, loads, type State, type Transition, view, whyNoChange, withMessage } from '../state/state.js';
import * as token from '../state/token.js';
import * as undo from '../state/undo.js';
import { firstOf, named } from './binding.js';

export const FEED_BINDINGS = named('logs', [
  {
    keys: ['enter', 'l', 'right'],
    on: ['audit', 'events'],
    label: 'detail',
    meaning: 'show or hide details',
    footer: 1,
    whyDisabled: nothingToOpen,
    run: toggleDetail,
  },
  {
    keys: ['t'],
    on: ['audit', 'events'],
    label: 'its token',
    meaning: 'go to its token',
    footer: 2,
    whyDisabled: firstOf(nothingHere, (state) => (tokenOfFeed(state) === null ? 'This entry has no token' : null)),
    run(state) {
      const id = tokenOfFeed(state);
      return id === null ? [state] : token.open(state, id, null);
    },
  },
  {
    keys: ['u'],
    on: ['audit'],
    label: 'undo it',
    meaning: 'undo the change under the cursor, or all changes of its batch; asks first',
    needs: 'undoBatch',
    footer: 3,
    whyDisabled: firstOf(nothingHere, whyNotUndoable, whyNoChange),
    run(state) {
      const record = recordUnderCursor(state);
      return record ? undo.revertRecord(state, record) : [state];
    },
  },
  {
    keys: ['e'],
    on: ['events'],
    label: 'failures',
    labelNow: (state) => (isOnlyFailures(state.events.filter) ? 'all' : 'failures'),
    meaning: 'show only failed requests, or all events again',
    footer: 3,
    run: (state) => applied(state, failuresToggled(state.events.filter)),
  },
  {
    name: 'copy-events-command',
    keys: ['Y'],
    on: ['events'],
    label: 'copy command',
    labelNow: (state) => (openRequest(state) ? 'copy curl' : 'copy command'),
    meaning:
      "copy the open request as a curl command, without its token, to the terminal's clipboard; without an open one, the command that streams the same events",
    run(state) {
      const { events, target } = state;
      const request = openRequest(state);
      if (request) return [state, { do: 'copy', text: curlCommand(request, target.server), what: 'The curl command' }];
      const text = listCommand({ screen: 'events', filter: events.filter, context: target.context });
      return [state, { do: 'copy', text, what: 'The command' }];
    },
  },
  {
    keys: ['y'],
    on: ['audit', 'events'],
    label: 'copy id',
    meaning: "copy the ID of the request or record to the terminal's clipboard",
    whyDisabled: nothingHere,
    run: (state) => [state, { do: 'copy', text: idOfFeed(state), what: 'The ID' }],
  },
]);

/** The request whose details are open. */
function openRequest({ events: { opened } }: State) {
  return opened?.kind === REQUEST_EVENT_KIND ? opened : null;
}

/** Why what has no other screen than its events has none for the caller; null: it has. */
export const whyNoEvents = (state: State): string | null =>
  mayShow(state, 'events') ? null : 'It has only events, which your role may not read';

/** Shows the events that match a filter, above the current view. Details of another event that are still open are closed. */
export function showEvents(state: State, filter: string): Transition {
  const why = whyNotPermitted(state, deedOf('events'));
  if (why !== null) return [withMessage(state, why, 'bad')];
  const { events } = state;
  const above = navigation.opened(
    { ...state, events: { ...events, opened: null, isFollowing: true } },
    { screen: 'events' },
  );
  return andThen(applied(above, filter), refreshed);
}

/** Opens or closes the details of the item under the cursor. */
export function toggleDetail(state: State): Transition {
  const isAudit = view(state).screen === 'audit';
  const next = toggled(state, isAudit ? 'audit' : 'events');
  return isAudit ? [next, ...loads(memberRequests(next))] : [next];
}

/** The item with open details, or else the one under the cursor. */
function itemUnderCursor({ audit, events, ...state }: State) {
  return view({ audit, events, ...state }).screen === 'audit'
    ? (audit.opened ?? underCursor(audit))
    : (events.opened ?? underCursor(events));
}
const recordUnderCursor = ({ audit }: State) => audit.opened ?? underCursor(audit);
function whyNotUndoable(state: State): string | null {
  const record = recordUnderCursor(state);
  return record ? undo.whyNotUndoable(record) : null;
}
function nothingHere(state: State): string | null {
  return itemUnderCursor(state) ? null : 'Nothing here';
}
function nothingToOpen(state: State): string | null {
  const { screen } = view(state);
  const isSoon = (screen === 'audit' || screen === 'events') && isLoading(state[screen]);
  return isSoon ? null : nothingHere(state);
}
const tokenOfFeed = (state: State) => itemUnderCursor(state)?.token_id ?? null;
/** The request ID if there is one, because clients receive it too; otherwise the ID of the item. */
const idOfFeed = (state: State) => itemUnderCursor(state)?.request_id ?? itemUnderCursor(state)?.id ?? '';

/** Whether the details of an item are open. */
export function hasOpenDetail(state: State): boolean {
  const { screen } = view(state);
  return (screen === 'audit' ? state.audit.opened : screen === 'events' ? state.events.opened : null) !== null;
}

/** The filter for failed requests only, as a part of a filter line. */
const ONLY_FAILURES = 'outcome:failed';

const partOf = (filter: string) =>
  termsOf(filter).find(({ at, length }) => filter.slice(at, at + length).toLowerCase() === ONLY_FAILURES);

const isOnlyFailures = (filter: string): boolean => partOf(filter) !== undefined;

/** Adds the part, or removes it. */
function failuresToggled(filter: string): string {
  const part = partOf(filter);
  if (!part) return `${filter} ${ONLY_FAILURES}`.trim();
  return `${filter.slice(0, part.at).trimEnd()} ${filter.slice(part.at + part.length).trimStart()}`.trim();
}
