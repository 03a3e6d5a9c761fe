/** Keys of the saved views, which have tabs after those of the screens. */
import { refreshed } from '../state/refreshing.js';
import type { SavedView } from '../state/saved.js';
import { openView, shownView, tabbedViews, viewsOf } from '../state/saved-views.js';
import { andThen, SCREENS, type State, type Transition } from '../state/state.js';
import { type Binding, named } from './binding.js';

/** After the numbers of the screens. */
const VIEW_KEYS = ['8', '9', '0'] as const;
const PLACES = ['first', 'second', 'third'] as const;

export function shown(state: State, view: SavedView | undefined): Transition {
  return view ? andThen(openView(state, view), refreshed) : [state];
}

/** The next view, in a circle; from a list that is no view, the first or the last one. */
function viewBy(state: State, by: 1 | -1): SavedView | undefined {
  const views = viewsOf(state);
  const at = views.findIndex((view) => view === shownView(state));
  if (at === -1) return by === 1 ? views[0] : views.at(-1);
  return views[(at + by + views.length) % views.length];
}

const whyNoView = (state: State) =>
  viewsOf(state).length === 0 ? 'There are no saved views yet; :save NAME stores the current list' : null;

export const VIEW_BINDINGS = named('views', [
  ...VIEW_KEYS.map((key, at): Binding => ({
    name: PLACES[at] ?? key,
    keys: [key],
    on: SCREENS,
    label: `view ${at + 1}`,
    meaning: `show the ${PLACES[at] ?? ''} saved view`,
    isUnlisted: (state) => tabbedViews(state)[at] === undefined,
    whyDisabled: (state) => (tabbedViews(state)[at] ? null : (whyNoView(state) ?? `There is no saved view ${at + 1}`)),
    run: (state) => shown(state, tabbedViews(state)[at]),
  })),
  {
    name: 'next',
    keys: [']'],
    on: SCREENS,
    label: 'next view',
    meaning: 'show the next saved view',
    whyDisabled: whyNoView,
    run: (state) => shown(state, viewBy(state, 1)),
  },
  {
    name: 'previous',
    keys: ['['],
    on: SCREENS,
    label: 'previous view',
    meaning: 'show the previous saved view',
    isUnlisted: (state) => viewsOf(state).length === 0,
    whyDisabled: whyNoView,
    run: (state) => shown(state, viewBy(state, -1)),
  },
]);
