/** Columns of a list: which ones fit, and their widths. The widths do not depend on the rows, so columns do not jump while scrolling. */
import { blank, fitted, joined, type Strip, text } from './strip.js';

export interface ListColumn<T> {
  title: string;
  /** On a narrow screen the column with the highest rank is dropped first; rank 0 always stays. */
  rank: number;
  /** In terminal columns. */
  minWidth: number;
  maxWidth?: number;
  alignRight?: boolean;
  show(item: T): Strip;
}

export interface SizedColumn<T> {
  column: ListColumn<T>;
  width: number;
}

const GAP = 2;

/** Selects the columns that fit, and distributes the remaining width, the most important columns first. */
export function sizedColumns<T>(columns: readonly ListColumn<T>[], width: number): readonly SizedColumn<T>[] {
  const needed = columns.reduce((sum, { minWidth }) => sum + minWidth, GAP * (columns.length - 1));
  const highest = Math.max(...columns.map(({ rank }) => rank));
  if (needed > width && highest > 0) {
    return sizedColumns(
      columns.filter(({ rank }) => rank !== highest),
      width,
    );
  }
  let room = Math.max(0, width - needed);
  const widths = new Map<ListColumn<T>, number>();
  for (const column of [...columns].sort((one, other) => one.rank - other.rank)) {
    const more = Math.min(room, Math.max(0, (column.maxWidth ?? column.minWidth) - column.minWidth));
    room -= more;
    widths.set(column, column.minWidth + more);
  }
  return columns.map((column) => ({ column, width: widths.get(column) ?? column.minWidth }));
}

export const titles = (columns: readonly SizedColumn<never>[]): Strip =>
  joined(
    columns.map(({ column, width }) => fitted([text(column.title, 'title')], width, alignOf(column))),
    ' '.repeat(GAP),
  );

export const cells = <T>(columns: readonly SizedColumn<T>[], item: T): Strip =>
  joined(
    columns.map(({ column, width }) => fitted(column.show(item), width, alignOf(column))),
    ' '.repeat(GAP),
  );

/** A row that is not loaded yet. */
export const unknownCells = (columns: readonly SizedColumn<never>[]): Strip =>
  joined(
    columns.map(({ width }) => fitted([text('…', 'faint')], width)),
    ' '.repeat(GAP),
  );

const alignOf = ({ alignRight }: { alignRight?: boolean }) => (alignRight ? 'right' : 'left');

/** Rows with aligned cells. */
export function aligned(rows: readonly (readonly Strip[])[], widths: readonly number[]): Strip[] {
  return rows.map((row) =>
    joined(
      row.map((cell, at) => (at === row.length - 1 ? cell : fitted(cell, widths[at] ?? 0))),
      ' '.repeat(GAP),
    ),
  );
}

export const indent = (line: Strip, columns = 1): Strip => [blank(columns), ...line];
