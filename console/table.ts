/** Renders tables and details for a terminal. */
import type { createColors } from 'picocolors';
import { type ColumnClaim, columnWidths } from './column-widths.js';
import type { Tint } from './columns/column.js';
import { plain, visible } from './escape.js';

type Colors = ReturnType<typeof createColors>;

/** How to render: the capabilities of the terminal, and the current time for relative times. */
export interface RenderOptions {
  colors: Colors;
  ascii: boolean;
  /** Columns of the terminal; Infinity if it is not a terminal. */
  width: number;
  /** Milliseconds since the epoch. */
  now: number;
}

export interface TableColumn<T> {
  title: string;
  /** If the terminal is too narrow, columns with the highest rank are removed first. Rank 0 is never removed. */
  rank: number;
  show(item: T, render: RenderOptions): string;
  tint?(item: T, render: RenderOptions): Tint | undefined;
  alignRight?: boolean;
  /** Long texts are truncated, so that other columns keep their place. */
  shrinks?: boolean;
  /** The width to which such a column is truncated before a column is removed. Default: 16. */
  minWidth?: number;
  /** Optional columns are removed before its texts are truncated. */
  keepsWidth?: boolean;
  /** For streamed lines: the fixed width, because later texts are not known yet. The last column needs none. */
  width?: number;
  /** For streamed lines: the column takes the remaining width of the terminal. */
  fills?: boolean;
}

export interface View<T> {
  idOf(item: T): string;
  /** For tab-separated and CSV output, in this order. */
  fields: readonly (keyof T & string)[];
  columns: readonly TableColumn<T>[];
  /** Whether its fields have parts, so that it is a line for each field rather than cells, also when piped. */
  isReport?: boolean;
  /** Lines after the items, for people only: for example their total. */
  summary?(items: readonly T[]): readonly T[];
  /** Labels for people, for fields whose names are not clear enough. */
  labels?: Readonly<Partial<Record<string, string>>>;
  /** Formatting for people, for fields whose raw values are hard to read. */
  details?: Readonly<Partial<Record<string, (item: T, render: RenderOptions) => string | readonly string[]>>>;
}

interface Cell {
  text: string;
  width: number;
  tint: Tint | undefined;
}

interface ColumnLayout extends ColumnClaim {
  fills?: boolean;
  alignRight: boolean;
  cells: Cell[];
}

const GAP = '  ';
const MAX_SHRINKABLE_WIDTH = 32;
const DEFAULT_MIN_WIDTH = 16;
// A column that fills the line becomes narrower only if all columns that can be removed are.
const MIN_FILL_WIDTH = 24;

/** A table. Every line fits `render.width` if the columns of rank 0 do. */
export async function tableOf<T>(
  items: readonly T[],
  columns: readonly TableColumn<T>[],
  render: RenderOptions,
): Promise<string> {
  // Loaded only for tables, because loading it takes as long as parsing the command line.
  const { default: widthOf } = await import('string-width');
  const laid = columns.map((column) => layoutOf(items, column, render, widthOf));
  const widths = columnWidths(laid, render.width, GAP.length);
  const shown = laid.flatMap((column, at) => {
    const width = widths[at] ?? null;
    return width === null ? [] : [cutTo(column, width, render, widthOf)];
  });
  const lines = Array.from({ length: items.length + 1 }, (_, row) =>
    shown
      .map(({ cells, wanted, alignRight }) => padded(cells[row], wanted, alignRight, row === 0, render.colors))
      .join(GAP)
      .trimEnd(),
  );
  return `${lines.join('\n')}\n`;
}

/** The line of a streamed item, or of the titles if `item` is null. Columns have fixed positions. */
export async function lineOf<T>(
  item: T | null,
  columns: readonly TableColumn<T>[],
  render: RenderOptions,
): Promise<string> {
  const { default: widthOf } = await import('string-width');
  const laid = columns.map((column): ColumnLayout => {
    const { rank, alignRight = false, title, shrinks, width = 0 } = column;
    const least = column.fills ? MIN_FILL_WIDTH : width;
    const whole = item === null ? title : visible(column.show(item, render));
    const text = shrinks ? truncated(whole, width, render.ascii ? '~' : '…', widthOf) : whole;
    const cell = { text, width: widthOf(text), tint: item === null ? undefined : column.tint?.(item, render) };
    return { rank, alignRight, fills: column.fills ?? false, cells: [cell], least, wanted: least };
  });
  const widths = columnWidths(laid, render.width, GAP.length);
  const shown = laid.filter((_, at) => widths[at] !== null);
  const taken = shown.reduce((sum, { wanted, fills }) => sum + (fills ? 0 : wanted) + GAP.length, -GAP.length);
  for (const { fills, cells } of shown) {
    const [cell] = cells;
    if (!fills || !cell) continue;
    cell.text = truncated(cell.text, Math.max(1, render.width - taken), render.ascii ? '~' : '…', widthOf);
    cell.width = widthOf(cell.text);
  }
  const cells = shown.map(({ cells: [cell], wanted, alignRight, fills }) =>
    padded(
      cell,
      fills ? (cell?.width ?? 0) : Math.max(wanted, cell?.width ?? 0),
      alignRight,
      item === null,
      render.colors,
    ),
  );
  return `${cells.join(GAP).trimEnd()}\n`;
}

/** A single item, with one line per field, or several for a list. */
export function detailOf<T>(item: T, view: View<T>, render: RenderOptions): string {
  const labelOf = (field: string) => view.labels?.[field] ?? field;
  const longest = Math.max(...view.fields.map((field) => labelOf(field).length));
  const lines = view.fields.flatMap((field) => {
    const texts = [view.details?.[field]?.(item, render) ?? plain(item[field])].flat();
    return texts.map((text, at) => {
      const label = (at === 0 ? labelOf(field) : '').padEnd(longest);
      return `${render.colors.dim(label)}${GAP}${visible(text)}`.trimEnd();
    });
  });
  return `${lines.join('\n')}\n`;
}

/** The number of terminal rows that a text occupies if it starts at the beginning of a row. */
export async function rowsOf(text: string, { width }: RenderOptions): Promise<number> {
  const { default: widthOf } = await import('string-width');
  const lines = text.split('\n').slice(0, -1);
  return lines.reduce((rows, line) => rows + Math.max(1, Math.ceil(widthOf(line) / width)), 0);
}

function layoutOf<T>(
  items: readonly T[],
  column: TableColumn<T>,
  render: RenderOptions,
  widthOf: (text: string) => number,
): ColumnLayout {
  const cells = items.map((item): Cell => {
    const whole = visible(column.show(item, render));
    const text = column.shrinks
      ? truncated(whole, render.width === Infinity ? Infinity : MAX_SHRINKABLE_WIDTH, render.ascii ? '~' : '…', widthOf)
      : whole;
    return { text, width: widthOf(text), tint: column.tint?.(item, render) };
  });
  cells.unshift({ text: column.title, width: column.title.length, tint: undefined });
  const wanted = cells.reduce((most, cell) => Math.max(most, cell.width), 0);
  return {
    rank: column.rank,
    least: column.shrinks ? Math.min(wanted, column.minWidth ?? DEFAULT_MIN_WIDTH) : wanted,
    wanted,
    keepsWidth: column.keepsWidth ?? false,
    alignRight: column.alignRight ?? false,
    cells,
  };
}

function truncated(text: string, most: number, sign: string, widthOf: (text: string) => number): string {
  if (widthOf(text) <= most) return text;
  let shortened = '';
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (widthOf(shortened + segment) > most - 1) break;
    shortened += segment;
  }
  return shortened + sign;
}

function cutTo(
  column: ColumnLayout,
  width: number,
  { ascii }: RenderOptions,
  widthOf: (text: string) => number,
): ColumnLayout {
  if (width === column.wanted) return column;
  const cells = column.cells.map((cell) => {
    const text = truncated(cell.text, width, ascii ? '~' : '…', widthOf);
    return { ...cell, text, width: widthOf(text) };
  });
  return { ...column, cells, wanted: width };
}

function padded(cell: Cell | undefined, width: number, alignRight: boolean, isTitle: boolean, colors: Colors): string {
  const { text, width: own, tint } = cell ?? { text: '', width: 0, tint: undefined };
  const space = ' '.repeat(width - own);
  const colored = isTitle ? colors.bold(text) : tint ? colors[tint](text) : text;
  return alignRight ? space + colored : colored + space;
}
