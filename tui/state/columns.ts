/** The columns of lists: which there are, which are shown, and how the operator chooses them. */
import { AUDIT_COLUMNS } from '../../console/columns/audit.js';
import { type Column, isShownBy } from '../../console/columns/column.js';
import { EVENT_COLUMNS } from '../../console/columns/events.js';
import { PROJECT_COLUMNS } from '../../console/columns/projects.js';
import { TOKEN_COLUMNS } from '../../console/columns/tokens.js';
import { topColumns } from '../../console/columns/top.js';
import type { FilteredScreen } from '../../console/query/types.js';
import { screenOf } from './filtering.js';
import { above, closed } from './navigation.js';
import { MAX_COLUMNS, type SavedChange, withSavedChange } from './saved.js';
import { shownView } from './saved-views.js';
import type { ColumnChoice } from './layers.js';
import { layer, type State, type Transition, withMessage } from './state.js';

/** The columns of each list. Those of Top do not depend on what its rows are, except for their titles. */
export const COLUMNS = {
  tokens: TOKEN_COLUMNS,
  projects: PROJECT_COLUMNS,
  audit: AUDIT_COLUMNS,
  events: EVENT_COLUMNS,
  top: topColumns('token', '1h'),
} satisfies Record<FilteredScreen, readonly Column<never>[]>;

/** A list whose columns can be chosen. */
export type ColumnScreen = keyof typeof COLUMNS;

export const columnsOf = (screen: FilteredScreen): readonly Column<never>[] => COLUMNS[screen];

const defaultIds = (screen: FilteredScreen): string[] =>
  columnsOf(screen).flatMap((column) => (isShownBy(column, 'tui') ? [column.id] : []));

/** The chosen columns of a list, in their order: while they are being chosen, of the view, or of the context. Null: the default ones. */
export function chosenColumns(state: State, screen: FilteredScreen): readonly string[] | null {
  const top = layer(state);
  if (top?.kind === 'columns' && top.screen === screen) return idsOf(top);
  const view = shownView(state);
  return (view?.screen === screen ? view.columns : null) ?? state.saved.columns[screen] ?? null;
}

/** The columns that a wide screen shows. */
export const shownIds = (state: State, screen: FilteredScreen): readonly string[] =>
  chosenColumns(state, screen) ?? defaultIds(screen);

const idsOf = ({ entries }: ColumnChoice) => entries.flatMap(({ id, isShown }) => (isShown ? [id] : []));

export function openChoice(state: State): Transition {
  const screen = screenOf(state);
  if (screen === undefined) return [state];
  return [above(state, choiceOf(screen, shownIds(state, screen)))];
}

/** The shown columns first, in their order. */
function choiceOf(screen: FilteredScreen, ids: readonly string[]): ColumnChoice {
  const all = columnsOf(screen).map(({ id }) => id);
  const shown = ids.filter((id) => all.includes(id));
  const hidden = all.filter((id) => !shown.includes(id));
  const entries = [...shown.map((id) => ({ id, isShown: true })), ...hidden.map((id) => ({ id, isShown: false }))];
  return { kind: 'columns', screen, entries, selected: 0, notice: null };
}

export const selectedBy =
  (by: number) =>
  (choice: ColumnChoice): ColumnChoice => ({
    ...choice,
    selected: Math.max(0, Math.min(choice.entries.length - 1, choice.selected + by)),
    notice: null,
  });

export function toggled(choice: ColumnChoice): ColumnChoice {
  const entries = choice.entries.map((entry, at) =>
    at === choice.selected ? { ...entry, isShown: !entry.isShown } : entry,
  );
  const shown = entries.filter(({ isShown }) => isShown).length;
  if (shown === 0) return { ...choice, notice: 'A list needs at least one column' };
  return shown > MAX_COLUMNS
    ? { ...choice, notice: `Up to ${MAX_COLUMNS} columns` }
    : { ...choice, entries, notice: null };
}

/** Moves the selected column towards the beginning or the end. */
export const movedBy =
  (by: 1 | -1) =>
  (choice: ColumnChoice): ColumnChoice => {
    const { entries, selected } = choice;
    const [entry, other] = [entries[selected], entries[selected + by]];
    if (!entry || !other) return { ...choice, notice: `This is the ${by === 1 ? 'last' : 'first'} column` };
    const next = entries.toSpliced(selected, 1, other).toSpliced(selected + by, 1, entry);
    return { ...choice, entries: next, selected: selected + by, notice: null };
  };

export const reset = ({ screen }: ColumnChoice): ColumnChoice => ({
  ...choiceOf(screen, defaultIds(screen)),
  notice: 'These are the default columns',
});

/** Stores the choice: with the saved view that is shown, or else for this list of the context. */
export function applied(state: State, top: ColumnChoice): Transition {
  const { screen } = top;
  const below = closed(state);
  const ids = idsOf(top);
  const columns = ids.join() === defaultIds(screen).join() ? null : ids;
  if (JSON.stringify(columns) === JSON.stringify(chosenColumns(below, screen))) return [below];
  const view = shownView(below);
  const change: SavedChange =
    view?.screen === screen ? { what: 'view', view: { ...view, columns } } : { what: 'columns', screen, columns };
  const next = { ...below, saved: withSavedChange(below.saved, change) };
  const words =
    change.what === 'view' ? `Saved the columns of the view ${change.view.name}` : `Saved the columns of ${screen}`;
  return [withMessage(next, words, 'good'), { do: 'save', change }];
}
