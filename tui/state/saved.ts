/** What the operator stores for a context: views, and the columns of lists. */
import type { FilteredScreen } from '../../console/query/types.js';

/** A list with its filter, under a name. */
export interface SavedView {
  name: string;
  screen: FilteredScreen;
  filter: string;
  /** In the syntax of the API, such as `-created_at`; null: the screen's own order. */
  sort: string | null;
  /** Null: those of the context, or the default ones. */
  columns: readonly string[] | null;
}

export interface Saved {
  /** In the order in which they were stored. */
  views: readonly SavedView[];
  /** The columns of each list, in their order; a list without an entry has the default ones. */
  columns: Readonly<Partial<Record<FilteredScreen, readonly string[]>>>;
}

/** A change of what is stored. Several terminal UIs can make changes at the same time. */
export type SavedChange =
  | { what: 'view'; view: SavedView }
  | { what: 'delete-view'; name: string }
  | { what: 'columns'; screen: FilteredScreen; columns: readonly string[] | null };

export const NOTHING_SAVED: Saved = { views: [], columns: {} };

/** Limit of the views of a context. */
export const MAX_VIEWS = 50;
/** Limit of the filter of a view, in characters. */
export const MAX_VIEW_FILTER = 1_000;
/** Limit of the columns of a list. */
export const MAX_COLUMNS = 40;

export const SAVED_SCREENS: readonly FilteredScreen[] = ['tokens', 'projects', 'audit', 'events', 'top'];

/** Names are words of the command line and of a file. */
export const isViewName = (name: string) => /^[\p{L}\p{N}][\p{L}\p{N}_.-]{0,31}$/u.test(name);

/** A view with the name of another one replaces it. */
export function withSavedChange(saved: Saved, change: SavedChange): Saved {
  const { views } = saved;
  if (change.what === 'delete-view') return { ...saved, views: views.filter(({ name }) => name !== change.name) };
  if (change.what === 'columns') {
    const others = Object.entries(saved.columns).filter(([screen]) => screen !== change.screen);
    const own = change.columns === null ? [] : [[change.screen, change.columns] as const];
    return { ...saved, columns: Object.fromEntries([...others, ...own]) };
  }
  const { view } = change;
  const isNew = !views.some(({ name }) => name === view.name);
  return {
    ...saved,
    views: isNew ? [...views, view] : views.map((other) => (other.name === view.name ? view : other)),
  };
}
