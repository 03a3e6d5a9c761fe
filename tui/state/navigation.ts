/** Navigation between views, and opening and closing layers. */
import { lineOf } from './line.js';
import { atFirst } from './top.js';
import type { Layer } from './layers.js';
import { deedOf, mayShow, whyNotPermitted } from './permitted.js';
import { layer, withMessage, type State, type Transition, TABS, type Tab, view, type View } from './state.js';

export const opened = (state: State, next: View): State => ({ ...state, views: [...state.views, next] });

export const above = (state: State, next: Layer): State => ({ ...state, layers: [...state.layers, next] });

export const closed = (state: State): State => ({ ...state, layers: state.layers.slice(0, -1) });

/** Closes the top layer, or goes back to the previous view, if there is one. */
export function back(state: State): State {
  if (layer(state)) return closed(state);
  return state.views.length > 1 ? { ...state, views: state.views.slice(0, -1) } : state;
}

/** The screens that the caller may see. They keep their numbers. */
export const tabsOf = (state: State): readonly Tab[] => TABS.filter((tab) => mayShow(state, tab));

export function toTab(state: State, tab: Tab): State {
  const why = whyNotPermitted(state, deedOf(tab));
  if (why !== null) return withMessage(state, why, 'bad');
  const next: State = { ...state, views: [{ screen: tab }] };
  // The first row is what the screen is opened for, also if another row was the first one before.
  return tab === 'top' ? atFirst(next) : next;
}

/** @param by 1 for the next tab, -1 for the previous one. */
export function tabBy(state: State, by: number): State {
  const { screen } = state.views[0] ?? view(state);
  const tabs = tabsOf(state);
  const at = tabs.findIndex((tab) => tab === screen);
  return toTab(state, tabs[(at + by + tabs.length) % tabs.length] ?? 'overview');
}

/** The filter of the current list; undefined on a screen without a filter. */
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
    case 'top':
      return state.top.filter;
    default:
      return undefined;
  }
}

export function promptForFilter(state: State): Transition {
  const before = filterOf(state) ?? '';
  // Typing adds another word.
  const line = lineOf(before === '' ? '' : `${before} `);
  return [above(state, { kind: 'prompt', line, before, problem: null })];
}

/** Switches to another daemon, unless a change is pending whose result would be lost. */
export function toContext(state: State, context: string): Transition {
  if (state.switchingTo !== null) return [withMessage(state, `Already switching to ${state.switchingTo}`)];
  if (state.pendingChanges.length > 0)
    return [withMessage(state, 'A change is pending; try again when it is done', 'bad')];
  return [withMessage({ ...state, switchingTo: context }, `Switching to ${context}`), { do: 'connect', context }];
}

/** Leaves a screen that the caller may not see, or not any more. */
export function withinPermission(state: State): State {
  const forbidden = state.views.find(({ screen }) => !mayShow(state, screen));
  if (!forbidden) return state;
  const [first = 'overview'] = [...tabsOf(state).filter((tab) => tab === 'tokens'), ...tabsOf(state)];
  return withMessage(toTab(state, first), whyNotPermitted(state, deedOf(forbidden.screen)) ?? '', 'bad');
}
