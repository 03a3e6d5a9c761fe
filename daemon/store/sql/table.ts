/**
 * A table as our statements use it. The SELECT list, the mapping of rows, INSERT and UPDATE are all derived from one declaration of
 * its columns (tables.ts), so that code that omits a column or invents one does not compile.
 */
import type { Cell, Column, Columns, InsertedOf, RowOf, ValuesOf } from './columns.js';
import type { Bind, SqlTransaction, StatementTimeout } from './database.js';
import { insertRows } from './json-rows.js';

/** Columns of a table that are selected together. */
export interface ColumnList<C extends Columns> {
  readonly properties: readonly (keyof C & string)[];
  /** Names of the columns, in the order of the properties. */
  readonly names: readonly string[];
  /** The list between SELECT and FROM. */
  readonly list: string;
  /** Converts a row. */
  readonly of: (row: RowOf<C>) => ValuesOf<C>;
  /** Picks the properties that have a column here. */
  readonly pick: (value: Readonly<ValuesOf<C>>) => ValuesOf<C>;
}

/** @param alias the table's alias in the statement, if it has one. */
export function columnList<C extends Columns>(columns: C, alias?: string): ColumnList<C> {
  const known = entriesOf(columns);
  const names = known.map(([, { name }]) => name);
  return {
    properties: Object.keys(columns),
    names,
    list: names.map((name) => (alias === undefined ? name : `${alias}.${name}`)).join(', '),
    of: (row) => {
      const cells = row as Record<string, Cell>;
      const values: Record<string, unknown> = {};
      for (const [property, { name, read }] of known) values[property] = read(cells[name] as Cell);
      return values as ValuesOf<C>;
    },
    pick: (value) => Object.fromEntries(known.map(([property]) => [property, value[property]])) as ValuesOf<C>,
  };
}

/** `V` with every property of `T` and no others. */
type Exactly<T, V> = V & T & Readonly<Record<Exclude<keyof V, keyof T>, never>>;

export class Table<C extends Columns> {
  readonly name: string;
  readonly columns: C;
  /** Names of the columns that identify a row, in the order of an index. */
  readonly key: readonly string[];
  readonly #inserted: readonly ColumnEntry[];
  readonly #inserts = new Map<number, string>();

  constructor(name: string, columns: C, key: readonly string[] = ['id']) {
    this.name = name;
    this.columns = columns;
    this.key = key;
    this.#inserted = entriesOf(columns).filter(([, column]) => !('isFilledIn' in column));
  }

  /** Inserts a row. */
  async insert<V>(tx: SqlTransaction, values: Exactly<InsertedOf<C>, V>): Promise<void> {
    await this.insertAll(tx, [values]);
  }

  /**
   * Inserts several rows in one statement, which is compiled once for each number of rows.
   *
   * @param ending appended to the statement.
   */
  async insertAll(tx: SqlTransaction, rows: readonly InsertedOf<C>[], ending = ''): Promise<void> {
    const bind: Bind = {};
    for (const [i, row] of rows.entries()) {
      const values = row as Record<string, unknown>;
      for (const [property, { name, write }] of this.#inserted) bind[`${name}_${i}`] = write(values[property]);
    }
    await tx.execute(`${this.#insertOf(rows.length)} ${ending}`, bind);
  }

  /** Inserts a large number of rows. */
  insertMany(tx: SqlTransaction, rows: readonly InsertedOf<C>[]): Promise<void> {
    const columns = this.#inserted.map(([, column]) => column);
    const cells = rows.map((row) => {
      const values = row as Record<string, unknown>;
      return Object.fromEntries(this.#inserted.map(([property, { name, write }]) => [name, write(values[property])]));
    });
    return insertRows(tx, this.name, columns, cells);
  }

  /** Inserts a row with SQL expressions as values. @param values an expression for each column. */
  async insertOf<V>(
    tx: SqlTransaction,
    values: Exactly<Record<keyof InsertedOf<C>, string>, V>,
    bind: Bind,
  ): Promise<void> {
    const expressions = this.#inserted.map(([property]) => (values as Record<string, string>)[property]);
    await tx.execute(`INSERT INTO ${this.#names} VALUES (${expressions.join(', ')})`, bind);
  }

  /** Updates the rows that match all of `where`. @returns the number of these rows. */
  update<V extends Partial<ValuesOf<C>>>(
    tx: SqlTransaction,
    where: Partial<ValuesOf<C>>,
    values: Exactly<Pick<ValuesOf<C>, keyof V & keyof C>, V>,
    timeout?: StatementTimeout,
  ): Promise<number> {
    const set = this.#bound(values, '');
    const found = this.#bound(where, 'where_');
    return tx.execute(
      `UPDATE ${this.name} SET ${set.equations.join(', ')} WHERE ${found.equations.join(' AND ')}`,
      Object.fromEntries([...set.bind, ...found.bind]),
      timeout,
    );
  }

  #bound(values: object, prefix: string): { equations: string[]; bind: [string, Cell][] } {
    const bound = Object.entries(values).map(([property, value]) => {
      const { name, write } = this.columns[property] as unknown as Column<unknown>;
      return { equation: `${name} = $${prefix}${name}`, cell: [`${prefix}${name}`, write(value)] as [string, Cell] };
    });
    return { equations: bound.map(({ equation }) => equation), bind: bound.map(({ cell }) => cell) };
  }

  get #names(): string {
    return `${this.name} (${this.#inserted.map(([, { name }]) => name).join(', ')})`;
  }

  #insertOf(rows: number): string {
    const known = this.#inserts.get(rows);
    if (known !== undefined) return known;
    const tuples = Array.from(
      { length: rows },
      (_, i) => `(${this.#inserted.map(([, { name }]) => `$${name}_${i}`).join(', ')})`,
    );
    const made = `INSERT INTO ${this.#names} VALUES ${tuples.join(', ')}`;
    this.#inserts.set(rows, made);
    return made;
  }
}

type ColumnEntry = [property: string, column: Column<unknown>];

// The types of a declaration bind the callers; inside this class all columns are treated alike.
const entriesOf = (columns: Columns): ColumnEntry[] => Object.entries(columns) as unknown as ColumnEntry[];
