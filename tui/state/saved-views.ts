/** Saved views: storing, opening and counting them. */
import { withoutSecrets } from '../../console/escape.js';
import { parseFilter } from '../../console/query/filter.js';
import type { DataRequest } from './exchange.js';
import * as feeds from './feeds.js';
import { screenOf } from './filtering.js';
import { filterOf } from './navigation.js';
import { mayShow } from './permitted.js';
import * as projects from './projects.js';
import { isViewName, MAX_VIEW_FILTER, MAX_VIEWS, type SavedChange, type SavedView, withSavedChange } from './saved.js';
import { knownNames, PROJECT_ORDERS, type State, TOKEN_ORDERS, type Transition, withMessage, loads } from './state.js';
import * as tokens from './tokens.js';
import * as top from './top.js';

/** The views that have a tab, and with it a key and a count. */
const MAX_VIEW_TABS = 5;
export const tabbedViews = (state: State): readonly SavedView[] => viewsOf(state).slice(0, MAX_VIEW_TABS);

/** The views of screens that the caller may see. */
export const viewsOf = (state: State): readonly SavedView[] =>
  state.saved.views.filter(({ screen }) => mayShow(state, screen));

/** The view that is shown: it was opened, and its filter has not been changed. */
export function shownView(state: State): SavedView | undefined {
  const [first] = state.views;
  if (!first || !('saved' in first)) return undefined;
  const it = state.saved.views.find(({ name, screen }) => name === first.saved && screen === first.screen);
  return it && state[it.screen].filter === it.filter ? it : undefined;
}

/** Why the current list cannot be stored; null: it can. */
export function whyNotSaved(state: State, name: string): string | null {
  if (screenOf(state) === undefined) return 'only tokens, projects, audit, events and top can be saved';
  if (!isViewName(name)) return 'a name has up to 32 letters, digits, and any of - _ .';
  const filter = filterOf(state) ?? '';
  if (filter.length > MAX_VIEW_FILTER) return `a filter of more than ${MAX_VIEW_FILTER} characters cannot be saved`;
  if (withoutSecrets(filter, []) !== filter) return 'the filter may contain a secret, and was not saved';
  const { views } = state.saved;
  return views.length >= MAX_VIEWS && !views.some((other) => other.name === name)
    ? `there are ${MAX_VIEWS} views, the maximum; delete one with :delete-view`
    : null;
}

/** Stores the current list. Call it only if `whyNotSaved` has no reason. */
export function saveView(state: State, name: string): Transition {
  const screen = screenOf(state);
  if (screen === undefined) return [state];
  const columns = shownView(state)?.columns ?? state.saved.columns[screen] ?? null;
  const saved: SavedView = { name, screen, filter: filterOf(state) ?? '', sort: sortOf(state, screen), columns };
  const isNew = !state.saved.views.some((other) => other.name === name);
  const [next, ...effects] = changed(state, { what: 'view', view: saved });
  const isTop = state.views.length === 1;
  const shown: State = isTop ? { ...next, views: [{ screen, saved: name }] } : next;
  const counts = loads(countRequests(shown));
  return [withMessage(shown, `${isNew ? 'Saved' : 'Replaced'} the view ${name}`, 'good'), ...effects, ...counts];
}

export function deleteView(state: State, name: string): Transition {
  const [next, ...effects] = changed(state, { what: 'delete-view', name });
  return [withMessage(next, `Deleted the view ${name}`), ...effects];
}

function changed(state: State, change: SavedChange): Transition {
  const next = { ...state, saved: withSavedChange(state.saved, change) };
  return [next, { do: 'save', change }];
}

function sortOf(state: State, screen: SavedView['screen']): string | null {
  if (screen === 'top') return top.settingsOf(state.top);
  if (screen !== 'tokens' && screen !== 'projects') return null;
  const { order, isDescending } = state[screen];
  return `${isDescending ? '-' : ''}${order}`;
}

/** Opens a view. Its data is requested with the next refresh. */
export function openView(state: State, { name, screen, filter, sort }: SavedView): Transition {
  const next: State = { ...state, views: [{ screen, saved: name }] };
  const isDescending = sort?.startsWith('-') ?? false;
  const wanted = sort?.replace(/^-/, '');
  switch (screen) {
    case 'tokens': {
      const order = TOKEN_ORDERS.find((one) => one === wanted);
      return [tokens.withNewList(next, { filter, ...(order && { order, isDescending }) })];
    }
    case 'projects': {
      const order = PROJECT_ORDERS.find((one) => one === wanted);
      return [projects.arranged(next, { filter, ...(order && { order, isDescending }) })];
    }
    case 'top':
      return [top.opened(next, filter, sort ?? '')];
    default:
      return feeds.filtered(next, screen, filter);
  }
}

/** One request per view with a tab whose rows the daemon counts. It returns the total and a single row. */
export function countRequests(state: State): DataRequest[] {
  return tabbedViews(state).flatMap(({ name, screen, filter }): DataRequest[] => {
    if (screen !== 'tokens') return [];
    const { query, isComplete } = parseFilter(filter, 'tokens', knownNames(state));
    return isComplete ? [{ of: 'viewCount', name, query: { ...query, limit: '1' } }] : [];
  });
}

/** How many rows a view has; null: it is not known. */
export function countOf(state: State, { name, screen, filter }: SavedView): number | null {
  if (screen === 'tokens') return state.viewCounts.get(name) ?? null;
  const { all } = state.projects;
  if (screen !== 'projects' || !all) return null;
  const { matches, isComplete } = parseFilter(filter, 'projects', { projects: all });
  return isComplete ? all.filter(matches).length : null;
}

export const withCount = (state: State, name: string, count: number | null): State => ({
  ...state,
  viewCounts: new Map(state.viewCounts).set(name, count),
});
