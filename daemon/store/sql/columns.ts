/** How the columns of tables are read and written. Which columns there are stands in tables.ts, and nowhere else. */
import type { Bind } from './database.js';

/** What a driver takes and gives for one column. Drivers differ in how they give booleans; numbers are numbers (numbers.ts). */
export type Cell = Bind[string];

/**
 * One column.
 *
 * @typeParam Value what the column is to our code.
 * @typeParam Stored what the database gives for it.
 */
export interface Column<Value, Stored extends Cell = Cell, Name extends string = string> {
  readonly name: Name;
  readonly read: (stored: Stored) => Value;
  readonly write: (value: Value) => Cell;
}

/** A column that no INSERT of ours names: the database gives it its default. */
export interface FilledIn {
  readonly isFilledIn: true;
}

/** Columns by the names that our code has for them. */
export type Columns = Readonly<Record<string, AnyColumn>>;
interface AnyColumn {
  readonly name: string;
  readonly read: (stored: never) => unknown;
  readonly write: (value: never) => Cell;
}

/** A column for each property of `T`, and for nothing else: `{ … } satisfies ColumnsOf<T>`. */
export type ColumnsOf<T> = {
  readonly [K in keyof T]-?: {
    readonly name: string;
    readonly read: (stored: never) => T[K];
    readonly write: (value: T[K]) => Cell;
  };
};

/** What columns hold, as our code has it. */
export type ValuesOf<C extends Columns> = { -readonly [K in keyof C]: ReturnType<C[K]['read']> };

/** What columns hold, as the database gives it, by the names that the database has for them. */
export type RowOf<C extends Columns> = { [K in keyof C as C[K]['name']]: Parameters<C[K]['read']>[0] };

/** What an INSERT must say. */
export type InsertedOf<C extends Columns> = {
  [K in keyof C as C[K] extends FilledIn ? never : K]: ReturnType<C[K]['read']>;
};

const asIs = <T>(value: T): T => value;

export const text = <Name extends string>(name: Name): Column<string, string, Name> => ({
  name,
  read: asIs,
  write: asIs,
});

/** A text of a closed list, which is taken at its word. The list is that of the property that the column is declared for. */
export const oneOf = <Value extends string, Name extends string>(name: Name): Column<Value, Value, Name> => ({
  name,
  read: asIs,
  write: asIs,
});

/** Times are numbers too: ms since the epoch. */
export const number = <Name extends string>(name: Name): Column<number, number, Name> => ({
  name,
  read: asIs,
  write: asIs,
});

export const flag = <Name extends string>(name: Name): Column<boolean, boolean | number, Name> => ({
  name,
  read: Boolean,
  write: asIs,
});

export const json = <Name extends string>(name: Name): Column<Record<string, unknown>, string, Name> => ({
  name,
  read: (stored) => JSON.parse(stored) as Record<string, unknown>,
  write: JSON.stringify,
});

/** A column that may be null, and is null to our code then. */
export const nullable = <Value, Stored extends Cell, Name extends string>({
  name,
  read,
  write,
}: Column<Value, Stored, Name>): Column<Value | null, Stored | null, Name> => ({
  name,
  read: (stored) => (stored === null ? null : read(stored)),
  write: (value) => (value === null ? null : write(value)),
});

/** A column that stores `none` where our code has null, so that lists can be sorted and continued by it, or it can be part of a key. */
export const nullAs = <Value, Stored extends Cell, Name extends string>(
  none: NoInfer<Stored>,
  { name, read, write }: Column<Value, Stored, Name>,
): Column<Value | null, Stored, Name> => ({
  name,
  read: (stored) => (stored === none ? null : read(stored)),
  write: (value) => (value === null ? none : write(value)),
});

/** A column that no INSERT of ours names: the database gives it its default. */
export const filledIn = <C extends AnyColumn>(column: C): C & FilledIn => ({ ...column, isFilledIn: true });
