/** Tables and details for a person at a terminal. */
import type { createColors } from 'picocolors';
import { plain, visible } from './escape.js';

type Colors = ReturnType<typeof createColors>;
export type Tint = 'green' | 'red' | 'yellow' | 'dim';

/** What the terminal can show, and when "now" is. */
export interface Look {
  colors: Colors;
  ascii: boolean;
  /** Columns of the terminal. */
  width: number;
  /** Milliseconds since the epoch. */
  now: number;
}

export interface Column<T> {
  title: string;
  /** When the terminal is too narrow, the column of the highest rank goes first; 0 always stays. */
  rank: number;
  show(item: T, look: Look): string;
  tint?(item: T): Tint | undefined;
  alignRight?: boolean;
  /** A long text that may be cut rather than cost other columns their place. */
  shrinks?: boolean;
  /** Where lines come one by one, and nobody knows yet how wide the next will be; none: the last. */
  width?: number;
  /** Where lines come one by one: it is cut to what the others leave of the terminal. */
  fills?: boolean;
}

export interface View<T> {
  idOf(item: T): string;
  /** For tab-separated and CSV output, in this order. */
  fields: readonly (keyof T & string)[];
  columns: readonly Column<T>[];
  /** What a person reads in place of the name of a field, where that says too little. */
  labels?: Readonly<Partial<Record<string, string>>>;
  /** Fields that a person reads better in another form. */
  details: Readonly<Partial<Record<string, (item: T, look: Look) => string>>>;
}

interface Cell {
  text: string;
  width: number;
  tint: Tint | undefined;
}

interface Laid {
  rank: number;
  fills?: boolean;
  alignRight: boolean;
  cells: Cell[];
  width: number;
}

const GAP = '  ';
const SHRUNK_WIDTH = 32;
// Of a column that takes what is left: narrower than this it says nothing, and other columns go before it.
const LEAST_FILLED = 24;

/** Every line fits `look.width` as long as the columns of rank 0 do. */
export async function tableOf<T>(items: readonly T[], columns: readonly Column<T>[], look: Look): Promise<string> {
  // Loaded only when there is a table to draw: it costs as much as parsing the whole command line.
  const { default: widthOf } = await import('string-width');
  const laid = columns.map((column) => lay(items, column, look, widthOf));
  const shown = fitting(laid, look.width);
  const lines = Array.from({ length: items.length + 1 }, (_, row) =>
    shown
      .map(({ cells, width, alignRight }) => padded(cells[row], width, alignRight, row === 0, look.colors))
      .join(GAP)
      .trimEnd(),
  );
  return `${lines.join('\n')}\n`;
}

/** The line of one that comes by itself, or of the titles for null; every column stands where it stood before. */
export async function lineOf<T>(item: T | null, columns: readonly Column<T>[], look: Look): Promise<string> {
  const { default: widthOf } = await import('string-width');
  const laid = columns.map((column): Laid => {
    const { rank, alignRight = false, title, shrinks, width = 0 } = column;
    const whole = item === null ? title : visible(column.show(item, look));
    const text = shrinks ? cut(whole, width, look.ascii ? '~' : '…', widthOf) : whole;
    const cell = { text, width: widthOf(text), tint: item === null ? undefined : column.tint?.(item) };
    return {
      rank,
      alignRight,
      fills: column.fills ?? false,
      cells: [cell],
      width: column.fills ? LEAST_FILLED : width,
    };
  });
  const shown = fitting(laid, look.width);
  const taken = shown.reduce((sum, { width, fills }) => sum + (fills ? 0 : width) + GAP.length, -GAP.length);
  for (const { fills, cells } of shown) {
    const [cell] = cells;
    if (!fills || !cell) continue;
    cell.text = cut(cell.text, Math.max(LEAST_FILLED, look.width - taken), look.ascii ? '~' : '…', widthOf);
    cell.width = widthOf(cell.text);
  }
  const cells = shown.map(({ cells: [cell], width, alignRight, fills }) =>
    padded(
      cell,
      fills ? (cell?.width ?? 0) : Math.max(width, cell?.width ?? 0),
      alignRight,
      item === null,
      look.colors,
    ),
  );
  return `${cells.join(GAP).trimEnd()}\n`;
}

/** One thing: a line for each field. */
export function detailOf<T>(item: T, view: View<T>, look: Look): string {
  const labelOf = (field: string) => view.labels?.[field] ?? field;
  const longest = Math.max(...view.fields.map((field) => labelOf(field).length));
  const lines = view.fields.map((field) => {
    const text = view.details[field]?.(item, look) ?? plain(item[field]);
    return `${look.colors.dim(labelOf(field).padEnd(longest))}${GAP}${visible(text)}`.trimEnd();
  });
  return `${lines.join('\n')}\n`;
}

/** How many rows of the terminal a text takes that was written from the beginning of one. */
export async function rowsOf(text: string, { width }: Look): Promise<number> {
  const { default: widthOf } = await import('string-width');
  const lines = text.split('\n').slice(0, -1);
  return lines.reduce((rows, line) => rows + Math.max(1, Math.ceil(widthOf(line) / width)), 0);
}

function lay<T>(items: readonly T[], column: Column<T>, look: Look, widthOf: (text: string) => number): Laid {
  const cells = items.map((item): Cell => {
    const whole = visible(column.show(item, look));
    const text = column.shrinks ? cut(whole, SHRUNK_WIDTH, look.ascii ? '~' : '…', widthOf) : whole;
    return { text, width: widthOf(text), tint: column.tint?.(item) };
  });
  cells.unshift({ text: column.title, width: column.title.length, tint: undefined });
  return {
    rank: column.rank,
    alignRight: column.alignRight ?? false,
    cells,
    width: cells.reduce((most, cell) => Math.max(most, cell.width), 0),
  };
}

function cut(text: string, most: number, sign: string, widthOf: (text: string) => number): string {
  if (widthOf(text) <= most) return text;
  let kept = '';
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (widthOf(kept + segment) > most - 1) break;
    kept += segment;
  }
  return kept + sign;
}

function fitting(columns: readonly Laid[], width: number): readonly Laid[] {
  const needed = columns.reduce((sum, column) => sum + column.width, GAP.length * (columns.length - 1));
  const highest = Math.max(...columns.map(({ rank }) => rank));
  if (needed <= width || highest === 0) return columns;
  return fitting(
    columns.filter(({ rank }) => rank !== highest),
    width,
  );
}

function padded(cell: Cell | undefined, width: number, alignRight: boolean, isTitle: boolean, colors: Colors): string {
  const { text, width: own, tint } = cell ?? { text: '', width: 0, tint: undefined };
  const space = ' '.repeat(width - own);
  const colored = isTitle ? colors.bold(text) : tint ? colors[tint](text) : text;
  return alignRight ? space + colored : colored + space;
}
