/** The keys of audit and events, where what happens comes by itself. */
import * as feeds from '../state/feed.js';
import { type State, type Step, view } from '../state/state.js';
import * as token from '../state/token.js';
import { type Binding, firstOf } from './binding.js';

export const FEED_BINDINGS: readonly Binding[] = [
  {
    keys: ['enter', 'l', 'right'],
    on: ['audit', 'events'],
    label: 'detail',
    meaning: 'show or hide details',
    footer: 1,
    unless: nothingHere,
    run: toggled,
  },
  {
    keys: ['t'],
    on: ['audit', 'events'],
    label: 'its token',
    meaning: 'go to its token',
    footer: 2,
    unless: firstOf(nothingHere, (state) => (tokenOfFeed(state) === null ? 'It is about no token' : null)),
    run(state) {
      const id = tokenOfFeed(state);
      return id === null ? [state] : token.open(state, id, null);
    },
  },
  {
    keys: ['y'],
    on: ['audit', 'events'],
    label: 'copy id',
    meaning: "copy the ID of the request or record to the terminal's clipboard",
    unless: nothingHere,
    run: (state) => [state, { do: 'copy', text: idOfFeed(state), what: 'The id' }],
  },
];

/** Looks at the one under the cursor closely, or no longer. */
export function toggled(state: State): Step {
  const { screen } = view(state);
  if (screen === 'audit') return [{ ...state, audit: feeds.toggled(state.audit) }];
  return [{ ...state, events: feeds.toggled(state.events) }];
}

/** The one that is looked at closely, or else the one under the cursor. */
function itemUnderCursor({ audit, events, ...state }: State) {
  return view({ audit, events, ...state }).screen === 'audit'
    ? (audit.opened ?? feeds.underCursor(audit))
    : (events.opened ?? feeds.underCursor(events));
}
function nothingHere(state: State): string | null {
  return itemUnderCursor(state) ? null : 'There is nothing here';
}
const tokenOfFeed = (state: State) => itemUnderCursor(state)?.token_id ?? null;
/** That of a request, where it has one, is what clients were told as well. */
const idOfFeed = (state: State) => itemUnderCursor(state)?.request_id ?? itemUnderCursor(state)?.id ?? '';

/** Whether one is looked at closely. */
export function isOpen(state: State): boolean {
  const { screen } = view(state);
  return (screen === 'audit' ? state.audit.opened : screen === 'events' ? state.events.opened : null) !== null;
}
