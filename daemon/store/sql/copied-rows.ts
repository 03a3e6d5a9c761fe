/** The rows of a table that is copied: in pages, and as a digest. */
import { hash } from 'node:crypto';
import type { Cell, Columns } from './columns.js';
import type { Bind, Reader } from './database.js';
import { type Cells, lengthOf, MAX_LENGTH } from './json-rows.js';
import { exactNumber } from './numbers.js';

/** What is copied of a table. */
export interface CopiedTable {
  readonly name: string;
  readonly columns: Columns;
  readonly key: readonly string[];
}

export type CopiedRow = Cells;

/** Some rows of a table, up to `after`: the key of the last one, in the order of the key; null before the first. */
export interface Stretch {
  after: readonly Cell[] | null;
  count: number;
  sums: string;
}
/** Rows in any order, as their number and the sum of the digests of each. */
export class RowsDigest {
  count: number;
  readonly #sums: Uint32Array;

  constructor(count = 0, sums = '') {
    this.count = count;
    this.#sums = Uint32Array.from({ length: LANES }, (_, lane) =>
      parseInt(sums.slice(8 * lane, 8 * lane + 8) || '0', 16),
    );
  }

  add(row: CopiedRow): void {
    this.#change(row, 1);
  }

  remove(row: CopiedRow): void {
    this.#change(row, -1);
  }

  #change(row: CopiedRow, by: 1 | -1): void {
    this.count += by;
    const digest = hash('sha256', JSON.stringify(Object.values(row)), 'buffer');
    const sums = this.#sums;
    // Not with an iterator, which would take longer than the digest.
    for (let lane = 0; lane < LANES; lane++) sums[lane] = (sums[lane] ?? 0) + by * digest.readUInt32LE(4 * lane);
  }

  /** In hex. */
  get sums(): string {
    return Array.from(this.#sums, (sum) => sum.toString(16).padStart(8, '0')).join('');
  }
}
const LANES = 8;

const FIRST_PAGE = 128;
const LARGEST_PAGE = 4_096;
/** For tables with texts of any length. */
const LARGEST_PAGE_OF_TEXTS = 1_024;
/** Rows of a table in the order of its key, in pages of about the same length. */
export class Pages {
  readonly #on: Reader;
  readonly #table: CopiedTable;
  readonly #columns: readonly Columns[string][];
  readonly #before: Cell | undefined;
  #rows = FIRST_PAGE;
  #next: Promise<CopiedRow[]>;

  /** @param before only rows whose first column of the key is below this. */
  constructor(on: Reader, table: CopiedTable, after: Stretch['after'], before?: Cell) {
    this.#on = on;
    this.#table = table;
    this.#columns = Object.values(table.columns);
    this.#before = before;
    this.#next = this.#read(after);
  }

  /** @returns the next rows; none at the end. While they are used, the ones after them are read. */
  async next(): Promise<CopiedRow[]> {
    const rows = await this.#next;
    const last = rows.at(-1);
    if (!last) return rows;
    const length = rows.reduce((sum, row) => sum + lengthOf(row), 0);
    const most = hasLongTexts(this.#table) ? LARGEST_PAGE_OF_TEXTS : LARGEST_PAGE;
    const fitting = Math.floor((rows.length * MAX_LENGTH) / length);
    // One of few numbers, because MySQL keeps every statement prepared.
    this.#rows = 2 ** Math.floor(Math.log2(Math.max(1, Math.min(most, 4 * this.#rows, fitting))));
    this.#next = this.#read(keyOf(this.#table, last));
    this.#next.catch(() => undefined); // Thrown by the next call, unless there is none.
    return rows;
  }

  /**
   * Not with one comparison of the whole key, for which MySQL would read the table from its beginning: first the rows that have all but the last
   * column of the key in common with the last row, then those with one less, and so on.
   */
  async #read(after: Stretch['after']): Promise<CopiedRow[]> {
    const { name, key } = this.#table;
    const names = this.#columns.map((column) => column.name);
    const rows: CopiedRow[] = [];
    for (let same = after ? key.length - 1 : 0; same >= 0 && rows.length < this.#rows; same--) {
      const conditions = key.slice(0, same).map((column, at) => `${column} = $k${at}`);
      if (after) conditions.push(`${key[same] ?? ''} > $k${same}`);
      if (this.#before !== undefined) conditions.push(`${key[0] ?? ''} < $before`);
      const bind: Bind = this.#before === undefined ? {} : { before: this.#before };
      for (const [at, cell] of (after ?? []).slice(0, same + 1).entries()) bind[`k${at}`] = cell;
      const found = await this.#on.select<CopiedRow>(
        `SELECT ${names.join(', ')} FROM ${name} ${conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''}
         ORDER BY ${key.slice(same).join(', ')} LIMIT ${this.#rows}`,
        bind,
      );
      for (const row of found) rows.push(this.#normal(row));
    }
    return rows;
  }

  /** The same on all databases. */
  #normal(row: CopiedRow): CopiedRow {
    const normal: CopiedRow = {};
    for (const { name, type } of this.#columns) {
      const cell = row[name] ?? null;
      if (cell === null || type === 'text' || type === 'json') normal[name] = cell;
      else if (type === 'flag') normal[name] = Boolean(cell);
      else normal[name] = Number.isSafeInteger(cell) ? cell : exactNumber(String(cell));
    }
    return normal;
  }
}

export const keyOf = ({ key }: CopiedTable, row: CopiedRow): Cell[] => key.map((name) => row[name] ?? null);

const hasLongTexts = ({ columns }: CopiedTable) => Object.values(columns).some(({ type }) => type === 'json');
