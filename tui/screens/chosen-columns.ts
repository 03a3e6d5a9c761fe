/** The columns of a list, as they are declared for all front ends. */
import { type Column, isShownBy, shortTitleOf, widthsOf } from '../../console/columns/column.js';
import { cellStrip } from '../parts/cells.js';
import type { ListColumn } from '../parts/columns.js';
import { chosenColumns, type ColumnScreen } from '../state/columns.js';
import { parsed } from '../state/filtering.js';
import { daemonNow, type State } from '../state/state.js';

interface ShownOptions<T, Id extends string> {
  /** The filter of the list: its words are highlighted. */
  filter: string;
  /** What the list is sorted by: that column has an arrow, and stays visible for long. */
  order?: { by: string; isDescending: boolean };
  /** What this screen shows in its own way, by the IDs of columns. */
  own?: { [K in Id]?: Partial<ListColumn<T>> };
}

/** From this width on times are shown in full. */
export const WIDE_COLUMNS = 100;
const RANK_OF_ORDER = 1.5;

/** The columns that the operator has chosen, or else the default ones. Of chosen ones, the last is dropped first on a narrow screen. */
export function shownColumns<T, Id extends string>(
  state: State,
  screen: ColumnScreen,
  columns: readonly Column<T, Id>[],
  { filter, order, own }: ShownOptions<T, Id>,
): readonly ListColumn<T>[] {
  const nowMs = daemonNow(state);
  const isNarrow = state.size.columns < WIDE_COLUMNS;
  const found = parsed(state, filter)?.words ?? [];
  const listColumn = (column: Column<T, Id>): ListColumn<T> => {
    const { rank, alignRight = false, isSearched, isWhole = false, keepsWidth = false } = column;
    const { min, max } = widthsOf(column);
    const options = { nowMs, words: isSearched ? found : [], isNarrow };
    const listed = {
      title: shortTitleOf(column),
      rank,
      minWidth: min,
      maxWidth: max,
      isWhole,
      keepsWidth,
      alignRight,
      show: (item: T) => cellStrip(column.cell(item, nowMs), options),
      ...own?.[column.id],
    };
    if (order === undefined || column.sort !== order.by) return listed;
    const title = `${listed.title} ${arrow(state, order)}`;
    const widened = Math.max(listed.minWidth, title.length);
    return { ...listed, title, minWidth: widened, rank: Math.min(rank, RANK_OF_ORDER) };
  };
  const chosen = chosenColumns(state, screen)?.flatMap((id) => columns.find((column) => column.id === id) ?? []) ?? [];
  if (chosen.length > 0) return chosen.map((column, rank) => ({ ...listColumn(column), rank }));
  return columns.filter((column) => isShownBy(column, 'tui')).map(listColumn);
}

/** The sort arrow. In ASCII it differs from the sign of a state that has the same symbol. */
const arrow = ({ look }: State, { isDescending }: { isDescending: boolean }) =>
  isDescending ? '▼' : look.ascii ? '^' : '▲';
