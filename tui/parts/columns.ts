/** Columns of a list: which fit, and how wide they are. The widths do not depend on the rows, so nothing jumps while one scrolls. */
import { blank, fitted, joined, type Strip, text } from './strip.js';

export interface Column<T> {
  title: string;
  /** When it is narrow, the column of the highest rank goes first; 0 always stays. */
  rank: number;
  /** In columns of the terminal. */
  least: number;
  most?: number;
  alignRight?: boolean;
  show(item: T): Strip;
}

export interface Laid<T> {
  column: Column<T>;
  width: number;
}

const GAP = 2;

/** Those that fit, with what room is left given to those that can use it, the important ones first. */
export function laid<T>(columns: readonly Column<T>[], width: number): readonly Laid<T>[] {
  const needed = columns.reduce((sum, { least }) => sum + least, GAP * (columns.length - 1));
  const highest = Math.max(...columns.map(({ rank }) => rank));
  if (needed > width && highest > 0) {
    return laid(
      columns.filter(({ rank }) => rank !== highest),
      width,
    );
  }
  let room = Math.max(0, width - needed);
  const widths = new Map<Column<T>, number>();
  for (const column of [...columns].sort((one, other) => one.rank - other.rank)) {
    const more = Math.min(room, Math.max(0, (column.most ?? column.least) - column.least));
    room -= more;
    widths.set(column, column.least + more);
  }
  return columns.map((column) => ({ column, width: widths.get(column) ?? column.least }));
}

export const titles = (columns: readonly Laid<never>[]): Strip =>
  joined(
    columns.map(({ column, width }) => fitted([text(column.title, 'title')], width, alignOf(column))),
    ' '.repeat(GAP),
  );

export const cells = <T>(columns: readonly Laid<T>[], item: T): Strip =>
  joined(
    columns.map(({ column, width }) => fitted(column.show(item), width, alignOf(column))),
    ' '.repeat(GAP),
  );

/** A row that is not known yet. */
export const unknownCells = (columns: readonly Laid<never>[]): Strip =>
  joined(
    columns.map(({ width }) => fitted([text('…', 'faint')], width)),
    ' '.repeat(GAP),
  );

const alignOf = ({ alignRight }: { alignRight?: boolean }) => (alignRight ? 'right' : 'left');

/** Lines below each other with their cells aligned, each as wide as its widest. */
export function aligned(rows: readonly (readonly Strip[])[], widths: readonly number[]): Strip[] {
  return rows.map((row) =>
    joined(
      row.map((cell, at) => (at === row.length - 1 ? cell : fitted(cell, widths[at] ?? 0))),
      ' '.repeat(GAP),
    ),
  );
}

export const indent = (line: Strip, columns = 1): Strip => [blank(columns), ...line];
