import type { PageOf, PageRequest, Position } from '../../core/ports.js';
import type { Bind, Reader } from './database.js';

/** Conditions that all must hold, with their values. */
export class Conditions {
  readonly #parts: string[] = [];
  readonly bind: Bind = {};

  and(condition: string, bind: Bind = {}): this {
    this.#parts.push(`(${condition})`);
    for (const [name, value] of Object.entries(bind)) {
      // SQLite refuses a value that the statement has no place for.
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
  where: Conditions;
  /** What is counted, where the page is of a part of it. */
  counted?: Conditions | undefined;
  /** Without nulls, which no comparison would ever find again. */
  sortColumn: string;
  idColumn: string;
  descending: boolean;
  page: PageRequest;
  /** Which way to take to a page; SQLite, left to itself, collects and sorts all of them. */
  hint?: string;
  countHint?: string;
  /** How many there are on all pages, where that is found out sooner than by counting them. */
  total?: (() => Promise<number>) | undefined;
  /** Where a total may be of a moment ago. */
  totals?: ((count: () => Promise<number>) => Promise<number>) | null;
  rowOf(row: Row): Item;
  positionOf(row: Row): Position;
}

/** One page by keyset: as quick at the end of a long list as at its beginning, and stable while rows come and go. */
export async function pageOf<Row extends object, Item>(on: Reader, list: List<Row, Item>): Promise<PageOf<Item>> {
  const { columns, from, where, sortColumn, idColumn, page } = list;
  // Made before the position is added to the conditions.
  const counted = list.total ?? countOf(on, list);
  const total = await (list.totals ? list.totals(counted) : counted());
  // To find nothing would take a walk through all there are.
  if (total === 0) return { rows: [], next: null, total };

  const direction = list.descending ? 'DESC' : 'ASC';
  const beyond = list.descending ? '<' : '>';
  if (page.after) {
    where.and(`${sortColumn} ${beyond} $value OR (${sortColumn} = $value AND ${idColumn} ${beyond} $id)`, {
      value: page.after.value,
      id: page.after.id,
    });
  }
  const order = `ORDER BY ${sortColumn} ${direction}, ${idColumn} ${direction}`;
  // First the ids alone (in brackets of their own, for MySQL limits no list otherwise), which an index holds together with what the conditions look at; then their rows.
  const ids = `SELECT ${idColumn} FROM ${from} ${list.hint ?? ''} ${where.sql} ${order} LIMIT ${page.limit + 1}`;
  const rows = await on.select<Row>(
    `SELECT ${columns} FROM ${from} WHERE ${idColumn} IN (SELECT * FROM (${ids}) page) ${order}`,
    where.bind,
  );
  const shown = rows.slice(0, page.limit);
  const last = shown.at(-1);
  return {
    rows: shown.map((row) => list.rowOf(row)),
    next: rows.length > page.limit && last ? list.positionOf(last) : null,
    total,
  };
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
