/** A list in a frame: column titles, visible rows, scroll bar and position. */
import { isLoaded, lengthOf, loadedRows, rowAt, type Window } from '../state/window.js';
import { cells, type ListColumn, sizedColumns, type SizedColumn, titles, unknownCells } from './columns.js';
import { exact } from '../../daemon/api/formats.js';
import { framed, type Scroll } from './frame.js';
import { fitted, inRole, strip, type Strip, text } from './strip.js';

/** An area of the terminal. */
export interface Area {
  columns: number;
  rows: number;
}

interface ListOptions<T extends { id: string }> {
  window: Window<T>;
  columns: readonly ListColumn<T>[];
  /** The mark before a row, or a space: one column. */
  markOf?: (item: T | undefined, index: number) => Strip;
  /** Lines of an empty list. */
  emptyLines: readonly Strip[];
  /** In the upper edge. */
  title?: Strip;
  /** In the lower edge, after the position. */
  foot?: Strip;
}

// Cursor, mark and space before a row; one space after it.
const BEFORE = 3;
const AROUND = 2 + BEFORE + 1;
/** Top edge, titles, bottom edge. */
const LINES_AROUND = 3;

export function listFrame<T extends { id: string }>(list: ListOptions<T>, area: Area): Strip[] {
  const { window } = list;
  const length = lengthOf(window);
  const shown = Math.max(1, area.rows - LINES_AROUND);
  const columns = sizedColumns(list.columns, area.columns - AROUND, loadedRows(window));
  const head = strip(' '.repeat(BEFORE), titles(columns));
  const { title = [], foot = [] } = list;
  if (length === 0) return framed([head, ...list.emptyLines], area.columns, area.rows, { title });
  const count = Math.min(shown, length - window.top);
  const rows = Array.from({ length: count }, (_, at) => row(list, columns, window.top + at, area.columns - 2));
  const scroll: Scroll = { top: window.top, shown, of: length, fixed: 1 };
  return framed([head, ...rows], area.columns, area.rows, {
    title,
    scroll,
    foot: strip(position(window, length), foot),
  });
}

function row<T extends { id: string }>(
  { window, markOf }: ListOptions<T>,
  columns: readonly SizedColumn<T>[],
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

/** Styles the whole line as selected; highlighted words stay visible. */
export const selected = (line: Strip): Strip =>
  line.flatMap((piece) => inRole([piece], piece.role === 'found' ? 'selectedFound' : 'selected'));

function position(window: Window<{ id: string }>, length: number): Strip {
  const of = window.total ?? length;
  return strip(`${exact(window.cursorIndex + 1)} of ${exact(Math.max(of, length))}`);
}

/** The lines of an empty list, below the titles and an empty line. */
export function emptyListLines(
  window: Window<{ id: string }>,
  lines: readonly (string | Strip)[],
  wait: string,
): Strip[] {
  const said = isLoaded(window) ? lines : [wait];
  return [[], ...said.map((line) => strip('   ', line))];
}

export const key = (words: string) => text(words, 'key');
