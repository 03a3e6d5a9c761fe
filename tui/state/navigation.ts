/** From view to view, and what lies above them. */
import { EMPTY_LINE, lineOf } from './line.js';
import { layer, type Layer, saying, type State, type Step, TABS, type Tab, view, type View } from './state.js';

export const opened = (state: State, next: View): State => ({ ...state, views: [...state.views, next] });

export const above = (state: State, next: Layer): State => ({ ...state, layers: [...state.layers, next] });

export const closed = (state: State): State => ({ ...state, layers: state.layers.slice(0, -1) });

/** Back to where one came from; from the first view nowhere. */
export function back(state: State): State {
  if (layer(state)) return closed(state);
  return state.views.length > 1 ? { ...state, views: state.views.slice(0, -1) } : state;
}

export const toTab = (state: State, tab: Tab): State => ({ ...state, views: [{ screen: tab }] });

/** @param by 1 for the next, -1 for the one before. */
export function tabBy(state: State, by: number): State {
  const { screen } = state.views[0] ?? view(state);
  const at = TABS.findIndex((tab) => tab === screen);
  return toTab(state, TABS[(at + by + TABS.length) % TABS.length] ?? 'overview');
}

/** The filter of the list that is looked at; undefined where there is none. */
export function filterOf(state: State): string | undefined {
  switch (view(state).screen) {
    case 'tokens':
      return state.tokens.filter;
    case 'projects':
      return state.projects.filter;
    case 'audit':
      return state.audit.filter;
    case 'events':
      return state.events.filter;
    default:
      return undefined;
  }
}

export function promptForFilter(state: State): Step {
  const before = filterOf(state) ?? '';
  // What is typed is a further word.
  const line = lineOf(before === '' ? '' : `${before} `);
  return [above(state, { kind: 'prompt', line, before, problem: null })];
}

export const palette = (state: State): Step => [above(state, { kind: 'palette', line: EMPTY_LINE, selected: 0 })];

/** To another daemon, unless something is on its way to this one that would be lost. */
export function toContext(state: State, context: string): Step {
  if (state.goingTo !== null) return [saying(state, `On the way to ${state.goingTo} already`)];
  if (state.underWay.length > 0) return [saying(state, 'A change is on its way; try again when it is made', 'bad')];
  return [saying({ ...state, goingTo: context }, `Going to ${context}`), { do: 'connect', context }];
}
