/**
 * Inserts rows as one value of JSON, which takes a tenth of the time of a value for each cell: the server does not plan thousands of
 * parameters.
 */
import type { Cell, ColumnType } from './columns.js';
import type { SqlTransaction } from './database.js';
import type { Dialect } from './dialect.js';

/** The cells of a row, by the names of the columns. */
export type Cells = Record<string, Cell>;

export interface TypedColumn {
  readonly name: string;
  readonly type: ColumnType;
}

/** Of the rows in a statement, in characters: every server accepts it. */
export const MAX_LENGTH = 1_000_000;

const TYPES_OF_POSTGRES = { text: 'text', json: 'text', number: 'bigint', flag: 'boolean' } as const;
const MYSQL_TEXT = 'LONGTEXT CHARACTER SET utf8mb4';
const TYPES_OF_MYSQL = { text: MYSQL_TEXT, json: MYSQL_TEXT, number: 'BIGINT', flag: 'TINYINT' } as const;

export async function insertRows(
  tx: SqlTransaction,
  table: string,
  columns: readonly TypedColumn[],
  rows: readonly Readonly<Cells>[],
): Promise<void> {
  const names = columns.map(({ name }) => name);
  const { isArray, read, from } = readersOf[tx.dialect.name](columns);
  const sql = `INSERT INTO ${table} (${names.join(', ')}) SELECT ${read.join(', ')} FROM ${from}`;
  for (const some of portions(rows)) {
    const json = JSON.stringify(isArray ? some.map((row) => names.map((name) => row[name] ?? null)) : some);
    await tx.execute(sql, { rows: json }, 'long');
  }
}

/** How a statement reads the cells of rows in JSON: an array, or an object with quoted names, because some are words of SQL. */
const readersOf: Record<Dialect['name'], (columns: readonly TypedColumn[]) => RowsInJson> = {
  sqlite: (columns) => ({
    isArray: true,
    read: columns.map((_, at) => `r.value ->> ${at}`),
    from: 'json_each($rows) AS r',
  }),
  postgres: (columns) => ({
    isArray: false,
    read: columns.map(({ name }) => `r."${name}"`),
    from: `json_to_recordset(CAST($rows AS json)) AS r(${columns.map(({ name, type }) => `"${name}" ${TYPES_OF_POSTGRES[type]}`).join(', ')})`,
  }),
  mysql: (columns) => ({
    isArray: true,
    read: columns.map((_, at) => `r.c${at}`),
    from: `JSON_TABLE($rows, '$[*]' COLUMNS (${columns
      .map(({ type }, at) => `c${at} ${TYPES_OF_MYSQL[type]} PATH '$[${at}]' ERROR ON ERROR`)
      .join(', ')})) AS r`,
  }),
};

interface RowsInJson {
  /** Whether a row is an array. */
  isArray: boolean;
  /** An expression for each column. */
  read: string[];
  from: string;
}

function* portions<Row extends Readonly<Cells>>(rows: readonly Row[]): Generator<Row[]> {
  let part: Row[] = [];
  let length = 0;
  for (const row of rows) {
    const more = lengthOf(row);
    if (part.length > 0 && length + more > MAX_LENGTH) {
      yield part;
      part = [];
      length = 0;
    }
    part.push(row);
    length += more;
  }
  if (part.length > 0) yield part;
}

/** About the number of characters of a row in JSON. */
export function lengthOf(row: Readonly<Cells>): number {
  let length = 0;
  for (const name in row) {
    const cell = row[name];
    length += typeof cell === 'string' ? cell.length : 8;
  }
  return length;
}
