/** A list in a pane: column titles, visible rows, scroll bar and position. */
import { exact } from '../../daemon/api/formats.js';
import { isLoaded, lengthOf, loadedRows, rowAt, type Window } from '../state/window.js';
import { cells, type ListColumn, sizedColumns, type SizedColumn, titles, unknownCells } from './columns.js';
import { Drawing } from './drawing.js';
import { Pane } from './pane.js';
import { fitted, inRole, strip, type Strip, text } from './strip.js';

interface ListProps<T extends { id: string }> {
  window: Window<T>;
  columns: readonly ListColumn<T>[];
  /** Number of rows that fit. */
  rows: number;
  /** The mark before a row, or a space: one column. */
  markOf?: (item: T | undefined, index: number) => Strip;
  /** What an empty list says. */
  emptyLines: readonly (string | Strip)[];
  /** What it says until it is loaded. */
  wait: string;
  /** In the upper edge. */
  title?: Strip;
  /** In the lower edge, after the position. */
  foot?: Strip;
}

// Cursor, mark and space before a row; one space after it.
const BEFORE = 3;
const AROUND = BEFORE + 1;

export function List<T extends { id: string }>(list: ListProps<T>) {
  const { window, rows, title = [], foot = [], emptyLines, wait } = list;
  const length = lengthOf(window);
  const draw = (width: number): Strip[] => {
    const columns = sizedColumns(list.columns, width - AROUND, loadedRows(window));
    const head = strip(' '.repeat(BEFORE), titles(columns));
    if (length === 0) return [head, ...emptyListLines(isLoaded(window) ? emptyLines : [wait])];
    const count = Math.min(rows, length - window.top);
    return [head, ...Array.from({ length: count }, (_, at) => row(list, columns, window.top + at, width))];
  };
  return (
    <Pane
      title={title}
      foot={length === 0 ? [] : strip(position(window, length), foot)}
      scroll={{ top: window.top, shown: rows, of: length, fixed: 1 }}
    >
      <Drawing flexGrow={1} draw={draw} />
    </Pane>
  );
}

function row<T extends { id: string }>(
  { window, markOf }: ListProps<T>,
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

/** What an empty list says, below the titles and an empty line. */
export const emptyListLines = (lines: readonly (string | Strip)[]): Strip[] => [
  [],
  ...lines.map((line) => strip('   ', line)),
];

export const key = (words: string) => text(words, 'key');
