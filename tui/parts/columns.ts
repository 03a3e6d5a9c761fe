/**
 * Columns of a list: which ones fit, and their widths. A width depends on all rows in memory and not only on the visible ones, so that
 * columns do not jump while scrolling.
 */
import { columnWidths } from '../../console/column-widths.js';
import { fitted, joined, strip, type Strip, text, widthOf } from './strip.js';

export interface ListColumn<T> {
  title: string;
  /** On a narrow screen the column with the highest rank is dropped first; rank 0 always stays. */
  rank: number;
  /** In terminal columns. */
  minWidth: number;
  /** A column with a maximum is as wide as its content, within these limits. */
  maxWidth?: number;
  /** Whether its content is never cut. */
  isWhole?: boolean;
  /** Whether optional columns are dropped before its content is cut. */
  keepsWidth?: boolean;
  alignRight?: boolean;
  show(item: T): Strip;
}

export interface SizedColumn<T> {
  column: ListColumn<T>;
  width: number;
}

const GAP = 2;

/**
 * Selects the columns that fit, and shares the width among them.
 *
 * @param items all rows in memory.
 */
export function sizedColumns<T extends object>(
  columns: readonly ListColumn<T>[],
  width: number,
  items: readonly T[],
): readonly SizedColumn<T>[] {
  const claims = columns.map((column) => {
    const { rank, minWidth, isWhole = false, keepsWidth = false } = column;
    const wanted = wantedWidth(column, items);
    return { rank, least: isWhole ? wanted : minWidth, wanted, keepsWidth };
  });
  const widths = columnWidths(claims, width, GAP);
  return columns.flatMap((column, at) => {
    const own = widths[at] ?? null;
    return own === null ? [] : [{ column, width: own }];
  });
}

function wantedWidth<T extends object>(column: ListColumn<T>, items: readonly T[]): number {
  const { title, minWidth, maxWidth = minWidth } = column;
  let widest = text(title).width;
  for (const item of items) {
    if (widest >= maxWidth) break;
    widest = Math.max(widest, contentWidth(column, item));
  }
  return Math.max(minWidth, Math.min(maxWidth, widest));
}

/** Widths of cells, which are measured once for each item: items do not change, a refresh replaces them. By the titles of columns. */
const measured = new WeakMap<object, Map<string, number>>();

function contentWidth<T extends object>(column: ListColumn<T>, item: T): number {
  const widths = measured.get(item) ?? new Map<string, number>();
  measured.set(item, widths);
  const width = widths.get(column.title) ?? widthOf(column.show(item));
  widths.set(column.title, width);
  return width;
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

/** A line with a name and a value. */
export function fact(name: string, value: Strip | string, width: number): Strip {
  return strip(fitted([text(name, 'faint')], width), ' ', value);
}
