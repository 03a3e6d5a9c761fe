/** A list in its frame: titles, the rows that are seen, a bar at the edge, and where one is in it. */
import { isHeardOf, lengthOf, rowAt, type Window } from '../state/window.js';
import { cells, type Column, laid, type Laid, titles, unknownCells } from './columns.js';
import { exact } from './figures.js';
import { framed, type Scroll } from './frame.js';
import { fitted, inRole, strip, type Strip, text } from './strip.js';

/** Room for lines, in columns and rows of the terminal. */
export interface Area {
  columns: number;
  rows: number;
}

interface Listed<T extends { id: string }> {
  window: Window<T>;
  columns: readonly Column<T>[];
  /** What stands before a row beside the cursor, one column: a mark, or a space. */
  markOf?: (item: T | undefined, index: number) => Strip;
  /** What is said where there are no rows. */
  nothing: readonly Strip[];
}

// The cursor, the mark, a space; a space at the end.
const BEFORE = 3;
const AROUND = 2 + BEFORE + 1;
/** Upper edge, titles, lower edge. */
const LINES_AROUND = 3;

export function listed<T extends { id: string }>(list: Listed<T>, area: Area): Strip[] {
  const { window } = list;
  const length = lengthOf(window);
  const shown = Math.max(1, area.rows - LINES_AROUND);
  const columns = laid(list.columns, area.columns - AROUND);
  const head = strip(' '.repeat(BEFORE), titles(columns));
  if (length === 0) return framed([head, ...list.nothing], area.columns, area.rows);
  const count = Math.min(shown, length - window.top);
  const rows = Array.from({ length: count }, (_, at) => row(list, columns, window.top + at, area.columns - 2));
  const scroll: Scroll = { top: window.top, shown, of: length, fixed: 1 };
  return framed([head, ...rows], area.columns, area.rows, { scroll, foot: place(window, length) });
}

function row<T extends { id: string }>(
  { window, markOf }: Listed<T>,
  columns: readonly Laid<T>[],
  index: number,
  width: number,
): Strip {
  const item = rowAt(window, index);
  const isCursor = index === window.cursorIndex;
  const line = strip(
    isCursor ? '>' : ' ',
    markOf?.(item, index) ?? ' ',
    ' ',
    item ? cells(columns, item) : unknownCells(columns),
  );
  return isCursor ? selected(fitted(line, width)) : line;
}

/** One bar, whatever is in it; what was looked for is still to be seen. */
export const selected = (line: Strip): Strip =>
  line.flatMap((piece) => inRole([piece], piece.role === 'found' ? 'selectedFound' : 'selected'));

function place(window: Window<{ id: string }>, length: number): Strip {
  const of = window.total ?? length;
  return strip(`${exact(window.cursorIndex + 1)} of ${exact(Math.max(of, length))}`);
}

/** What stands in an empty list, a line below the titles. */
export function saidInside(window: Window<{ id: string }>, lines: readonly (string | Strip)[], wait: string): Strip[] {
  const said = isHeardOf(window) ? lines : [wait];
  return [[], ...said.map((line) => strip('   ', line))];
}

export const key = (words: string) => text(words, 'key');
