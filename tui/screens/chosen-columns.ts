import type { ListColumn } from '../parts/columns.js';
import { chosenColumns, type ColumnId, columnInfo, type ColumnScreen } from '../state/columns.js';
import type { State } from '../state/state.js';

/** A column that the operator can choose by its name. */
export interface ChoosableColumn<T, S extends ColumnScreen> extends ListColumn<T> {
  id: ColumnId<S>;
}

/** The columns that the operator has chosen, or else the default ones. Of chosen ones, the last is dropped first on a narrow screen. */
export function chosenOf<T, S extends ColumnScreen>(
  state: State,
  screen: S,
  all: readonly ChoosableColumn<T, S>[],
): readonly ListColumn<T>[] {
  const chosen = chosenColumns(state, screen)?.flatMap((id) => all.find((column) => column.id === id) ?? []) ?? [];
  if (chosen.length > 0) return chosen.map((column, rank) => ({ ...column, rank }));
  const optional = columnInfo(screen).flatMap(({ id, isOptional }) => (isOptional ? [id] : []));
  return all.filter(({ id }) => !optional.includes(id));
}
