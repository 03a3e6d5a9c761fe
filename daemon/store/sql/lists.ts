import { AdaptiveMemo } from '../../core/adaptive-memo.js';
import type { Clock, PageOf, PageRequest, Position } from '../../core/ports.js';
import type { Bind, Reader } from './database.js';

/** SQL conditions joined with AND, and their bind values. */
export class Conditions {
  readonly #parts: string[] = [];
  readonly bind: Bind = {};

  and(condition: string, bind: Bind = {}): this {
    this.#parts.push(`(${condition})`);
    for (const [name, value] of Object.entries(bind)) {
      // SQLite rejects bind values that the statement does not use.
      if (new RegExp(`\\$${name}\\b`).test(condition)) this.bind[name] = value;
    }
    return this;
  }

  get sql(): string {
    return this.#parts.length === 0 ? '' : `WHERE ${this.#parts.join(' AND ')}`;
  }
}

interface List<Row, Item> {
  columns: string;
  from: string;
  /** Follows `from` for the page, if it is sorted by another table. */
  join?: string;
  where: Conditions;
  /** Conditions for the total, if the page covers only a part of the list. */
  counted?: Conditions | undefined;
  /** Must not contain NULL, which no comparison matches. */
  sortColumn: string;
  idColumn: string;
  descending: boolean;
  page: PageRequest;
  /** Index hint for the page. Without it SQLite reads and sorts all rows. */
  hint?: string;
  countHint?: string;
  /** Total number of rows, if there is a faster way than counting. */
  total?: (() => Promise<number>) | undefined;
  /** The IDs of the page and of one more row, if they are known already. */
  found?: readonly string[] | null;
  /** Caches the total of long lists for a moment. */
  totals?: ((count: () => Promise<number>) => Promise<number>) | null;
  rowOf(row: Row): Item;
  positionOf(row: Row): Position;
}

/** Smaller totals are always current: a user may have just created an item, and look for it. */
const MANY = 20_000;
const MAX_LISTS = 1_000;

/**
 * Totals of lists, by their filters as text. Counting a million rows takes PostgreSQL longer than the rest of a page, so the total of a long
 * list may be slightly out of date.
 */
export type ListTotals = AdaptiveMemo<number>;

export const totalsOfLists = (clock: Pick<Clock, 'monotonic' | 'after'>): ListTotals =>
  new AdaptiveMemo(clock, MAX_LISTS, (total) => total >= MANY);

/** Reads one page by keyset: equally fast at the end of a long list, and stable while rows are added and removed. */
export async function pageOf<Row extends object, Item>(on: Reader, list: List<Row, Item>): Promise<PageOf<Item>> {
  const { page } = list;
  // Before the position is added to the conditions.
  const counted = list.total ?? countOf(on, list);
  const total = await (list.totals ? list.totals(counted) : counted());
  // To find nothing, the database would scan the whole index.
  if (total === 0) return { rows: [], next: null, total };

  const rows = await rowsOf(on, list);
  const shown = rows.slice(0, page.limit);
  const last = shown.at(-1);
  return {
    rows: shown.map((row) => list.rowOf(row)),
    next: rows.length > page.limit && last ? list.positionOf(last) : null,
    total,
  };
}

type Ordered = Pick<List<object, unknown>, 'sortColumn' | 'idColumn' | 'descending'>;

export const orderOf = ({ sortColumn, idColumn, descending }: Ordered) => {
  const direction = descending ? 'DESC' : 'ASC';
  return `ORDER BY ${sortColumn} ${direction}, ${idColumn} ${direction}`;
};

/** The conditions, and that a row comes after a position. */
export function afterPosition(
  where: Conditions,
  { sortColumn, idColumn, descending }: Ordered,
  after: Position | null,
) {
  const beyond = descending ? '<' : '>';
  return after
    ? where.and(`${sortColumn} ${beyond} $value OR (${sortColumn} = $value AND ${idColumn} ${beyond} $id)`, {
        value: after.value,
        id: after.id,
      })
    : where;
}

/** The rows of the page, and one more if there are more. */
function rowsOf<Row extends object, Item>(on: Reader, list: List<Row, Item>): Promise<Row[]> {
  const { columns, from, idColumn, page, found, join = '' } = list;
  const order = orderOf(list);
  if (found) {
    const listed = on.dialect.rowsIn(from, idColumn, '$page');
    return on.select<Row>(`SELECT ${columns} FROM ${listed} ${join} ${order}`, { page: JSON.stringify(found) });
  }
  const where = afterPosition(list.where, list, page.after);
  // First select only the IDs, from an index that covers the conditions, then read those rows. The subquery is nested because MySQL
  // does not support LIMIT directly in IN (…).
  const ids = `SELECT ${idColumn} FROM ${from} ${list.hint ?? ''} ${join} ${where.sql} ${order} LIMIT ${page.limit + 1}`;
  return on.select<Row>(
    `SELECT ${columns} FROM ${from} ${join} WHERE ${idColumn} IN (SELECT * FROM (${ids}) page) ${order}`,
    where.bind,
  );
}

function countOf<Row, Item>(on: Reader, list: List<Row, Item>): () => Promise<number> {
  const { from, where, counted: of = where, countHint = '' } = list;
  const sql = `SELECT COUNT(*) AS total FROM ${from} ${countHint} ${of.sql}`;
  const bind = { ...of.bind };
  return async () => {
    const [counted] = await on.select<{ total: number }>(sql, bind);
    return counted?.total ?? 0;
  };
}
