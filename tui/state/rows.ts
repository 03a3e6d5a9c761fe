/** Heights: how many rows of a list fit on the screen. */
import type { State } from './state.js';

/** Header and tabs. */
export const LINES_ABOVE_AREA = 2;
/** Message and footer. */
const LINES_BELOW_AREA = 2;
/** Upper edge, column titles and lower edge of a list. */
const LINES_AROUND_ROWS = 3;
/** Minimum size. A smaller terminal shows only a line with this size. */
export const MIN_SIZE = { columns: 50, rows: 10 };

/** The area between the tabs and the message, in columns and rows. */
export const areaOf = ({ size: { columns, rows } }: Pick<State, 'size'>) => ({
  columns,
  rows: rows - LINES_ABOVE_AREA - LINES_BELOW_AREA,
});

export const listRows = (state: Pick<State, 'size'>) => Math.max(1, areaOf(state).rows - LINES_AROUND_ROWS);
export const isTooSmall = ({ size }: Pick<State, 'size'>) =>
  size.columns < MIN_SIZE.columns || size.rows < MIN_SIZE.rows;

/** A low screen shows less, so that what matters most is not far below. */
export const isLow = ({ size: { rows } }: Pick<State, 'size'>) => rows < 32;

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
