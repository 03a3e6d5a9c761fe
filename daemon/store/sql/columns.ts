/** Column types: how values are read from and written to the database. The columns themselves are declared only in tables.ts. */
import type { Bind } from './database.js';

/**
 * A value as the database driver takes and returns it. Drivers differ in how they return booleans; numbers are always numbers
 * (numbers.ts).
 */
export type Cell = Bind[string];

/** What the database stores: `json` is text too, of any length. A flag is a boolean on PostgreSQL, and 0 or 1 elsewhere. */
export type ColumnType = 'text' | 'number' | 'flag' | 'json';

/**
 * A column.
 *
 * @typeParam Value the type in our code.
 * @typeParam Stored the type that the database returns.
 */
export interface Column<Value, Stored extends Cell = Cell, Name extends string = string> {
  readonly name: Name;
  readonly type: ColumnType;
  readonly read: (stored: Stored) => Value;
  readonly write: (value: Value) => Cell;
}

/** A column that no INSERT of ours names: the database gives it its default. */
export interface FilledIn {
  readonly isFilledIn: true;
}

/** Columns by their property names in our code. */
export type Columns = Readonly<Record<string, AnyColumn>>;
interface AnyColumn {
  readonly name: string;
  readonly type: ColumnType;
  readonly read: (stored: never) => unknown;
  readonly write: (value: never) => Cell;
}

/** A column for each property of `T`, and no others: `{ … } satisfies ColumnsOf<T>`. */
export type ColumnsOf<T> = {
  readonly [K in keyof T]-?: {
    readonly name: string;
    readonly type: ColumnType;
    readonly read: (stored: never) => T[K];
    readonly write: (value: T[K]) => Cell;
  };
};

/** Values of columns, with the names and types of our code. */
export type ValuesOf<C extends Columns> = { -readonly [K in keyof C]: ReturnType<C[K]['read']> };

/** A row of these columns, with the names and types of the database. */
export type RowOf<C extends Columns> = { [K in keyof C as C[K]['name']]: Parameters<C[K]['read']>[0] };

/** Values that an INSERT must provide. */
export type InsertedOf<C extends Columns> = {
  [K in keyof C as C[K] extends FilledIn ? never : K]: ReturnType<C[K]['read']>;
};

const asIs = <T>(value: T): T => value;

export const text = <Name extends string>(name: Name): Column<string, string, Name> => ({
  name,
  type: 'text',
  read: asIs,
  write: asIs,
});

/**
 * A text with a fixed set of values, which is not checked when read. The type comes from the property that the column is declared
 * for.
 */
export const enumText = <Value extends string, Name extends string>(name: Name): Column<Value, Value, Name> => ({
  name,
  type: 'text',
  read: asIs,
  write: asIs,
});

/** Also for times, in ms since the epoch. */
export const number = <Name extends string>(name: Name): Column<number, number, Name> => ({
  name,
  type: 'number',
  read: asIs,
  write: asIs,
});

export const flag = <Name extends string>(name: Name): Column<boolean, boolean | number, Name> => ({
  name,
  type: 'flag',
  read: Boolean,
  write: asIs,
});

/** What is read is not checked: only we write it. */
export const json = <Value, Name extends string>(name: Name): Column<Value, string, Name> => ({
  name,
  type: 'json',
  read: (stored) => JSON.parse(stored) as Value,
  write: JSON.stringify,
});

/** A column that can be NULL, which our code sees as null. */
export const nullable = <Value, Stored extends Cell, Name extends string>({
  name,
  type,
  read,
  write,
}: Column<Value, Stored, Name>): Column<Value | null, Stored | null, Name> => ({
  name,
  type,
  read: (stored) => (stored === null ? null : read(stored)),
  write: (value) => (value === null ? null : write(value)),
});

/** A column that stores `none` for null, so that lists can be sorted and paged by it, or it can be part of a key. */
export const nullAs = <Value, Stored extends Cell, Name extends string>(
  none: NoInfer<Stored>,
  { name, type, read, write }: Column<Value, Stored, Name>,
): Column<Value | null, Stored, Name> => ({
  name,
  type,
  read: (stored) => (stored === none ? null : read(stored)),
  write: (value) => (value === null ? none : write(value)),
});

/** A column that no INSERT of ours names: the database gives it its default. */
export const filledIn = <C extends AnyColumn>(column: C): C & FilledIn => ({ ...column, isFilledIn: true });
