/**
 * A table as our statements see it. The SELECT list, what a row becomes, INSERT and UPDATE all follow from one declaration of its columns
 * (tables.ts), so that nothing compiles that leaves a column out or makes one up.
 */
import type { Cell, Column, Columns, InsertedOf, RowOf, ValuesOf } from './columns.js';
import type { Bind, Connection, Patience } from './database.js';

/** Some columns of a table, to be selected together. */
export interface Selection<C extends Columns> {
  readonly properties: readonly (keyof C & string)[];
  /** Of the columns, in the order of the properties. */
  readonly names: readonly string[];
  /** What stands between SELECT and FROM. */
  readonly list: string;
  /** What a row becomes. */
  readonly of: (row: RowOf<C>) => ValuesOf<C>;
  /** Of a value with more properties those that stand in these columns. */
  readonly pick: (value: Readonly<ValuesOf<C>>) => ValuesOf<C>;
}

/** @param alias what the statement calls the table, where it calls it something else than its name. */
export function selection<C extends Columns>(columns: C, alias?: string): Selection<C> {
  const known = partsOf(columns);
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

/** `V`, which must have every property of `T` and no other. */
type Exactly<T, V> = V & T & Readonly<Record<Exclude<keyof V, keyof T>, never>>;

export class Table<C extends Columns> {
  readonly name: string;
  readonly columns: C;
  readonly #inserted: readonly Part[];
  readonly #inserts = new Map<number, string>();

  constructor(name: string, columns: C) {
    this.name = name;
    this.columns = columns;
    this.#inserted = partsOf(columns).filter(([, column]) => !('isFilledIn' in column));
  }

  /** Inserts a row. */
  async insert<V>(tx: Connection, values: Exactly<InsertedOf<C>, V>): Promise<void> {
    await this.insertAll(tx, [values]);
  }

  /**
   * Inserts several rows in one statement. It is compiled once for each number of rows.
   *
   * @param ending goes behind the statement.
   */
  async insertAll(tx: Connection, rows: readonly InsertedOf<C>[], ending = ''): Promise<void> {
    const bind: Bind = {};
    for (const [i, row] of rows.entries()) {
      const values = row as Record<string, unknown>;
      for (const [property, { name, write }] of this.#inserted) bind[`${name}_${i}`] = write(values[property]);
    }
    await tx.execute(`${this.#insertOf(rows.length)} ${ending}`, bind);
  }

  /** Inserts a row of which some values are SQL. @param values an expression for each column. */
  async insertOf<V>(
    tx: Connection,
    values: Exactly<Record<keyof InsertedOf<C>, string>, V>,
    bind: Bind,
  ): Promise<void> {
    const expressions = this.#inserted.map(([property]) => (values as Record<string, string>)[property]);
    await tx.execute(`INSERT INTO ${this.#names} VALUES (${expressions.join(', ')})`, bind);
  }

  /** Changes the rows that hold all of `where`. @returns how many there are. */
  update<V extends Partial<ValuesOf<C>>>(
    tx: Connection,
    where: Partial<ValuesOf<C>>,
    values: Exactly<Pick<ValuesOf<C>, keyof V & keyof C>, V>,
    patience?: Patience,
  ): Promise<number> {
    const set = this.#bound(values, '');
    const found = this.#bound(where, 'where_');
    return tx.execute(
      `UPDATE ${this.name} SET ${set.equations.join(', ')} WHERE ${found.equations.join(' AND ')}`,
      Object.fromEntries([...set.bind, ...found.bind]),
      patience,
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

type Part = [property: string, column: Column<unknown>];

// What the types of a declaration say, its user is held to; in here they are all the same.
const partsOf = (columns: Columns): Part[] => Object.entries(columns) as unknown as Part[];
