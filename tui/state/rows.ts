/** How much of a list fits below the titles: what is around it on every screen is the same. */
import type { State } from './state.js';

/** Header, tabs, frame above with titles, frame below, message, footer. */
const AROUND = 7;
/** Smaller than this the terminal shows a line that says so. */
export const LEAST = { columns: 50, rows: 10 };

export const listRows = ({ size }: Pick<State, 'size'>) => Math.max(1, size.rows - AROUND);
export const isTooSmall = ({ size }: Pick<State, 'size'>) => size.columns < LEAST.columns || size.rows < LEAST.rows;

/** An audit record or event that is looked at closely has at most so many lines, and a rule above them. */
const MOST_OPEN_ROWS = 16;

/** What of the rows of a feed its open item takes, the rule above it included. */
export const openRows = (state: Pick<State, 'size'>) => Math.min(MOST_OPEN_ROWS, Math.floor(listRows(state) / 2));

export const feedRows = (state: Pick<State, 'size'>, { opened }: { opened: unknown }) =>
  Math.max(1, listRows(state) - (opened === null ? 0 : openRows(state)));
