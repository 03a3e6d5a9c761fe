/** Heights: how many rows of a list fit on the screen. */
import type { State } from './state.js';

/** Header, tabs, top edge, column titles, bottom edge, message, footer. */
const CHROME_ROWS = 7;
/** Minimum size. A smaller terminal shows only a line with this size. */
export const MIN_SIZE = { columns: 50, rows: 10 };

export const listRows = ({ size }: Pick<State, 'size'>) => Math.max(1, size.rows - CHROME_ROWS);
export const isTooSmall = ({ size }: Pick<State, 'size'>) =>
  size.columns < MIN_SIZE.columns || size.rows < MIN_SIZE.rows;

/** Maximum height of the details of an audit record or event, with the rule above them. */
const MAX_DETAIL_ROWS = 16;

/** With fewer rows, open details replace the list: there is no room for both. */
const MIN_ROWS_FOR_BOTH = 8;

/** Rows of a feed's list: open details, with the rule above them, take the others. */
export function feedRows(state: Pick<State, 'size'>, { opened }: { opened: unknown }): number {
  const rows = listRows(state);
  if (opened === null) return rows;
  return rows < MIN_ROWS_FOR_BOTH ? 0 : rows - Math.min(MAX_DETAIL_ROWS, Math.floor(rows / 2));
}
