/** SQL dialect: the parts of a statement that differ between databases. The stores' statements are otherwise the same for all of them. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres' | 'mysql';
  /** Index hint, placed after a table name. For databases that would otherwise read and sort all rows. */
  readonly indexHint: (index: string) => string;
  /** `FROM` clause for only those rows of `table` whose `column` is in the JSON array bound to `list`, found one by one. */
  readonly rowsIn: (table: string, column: string, list: string) => string;
  /** Query for the texts in the JSON array bound to `list`, as `value`. None has more than 64 characters. */
  readonly textsIn: (list: string) => string;
  /** Joins two tables: for each row of the first one, those of the second. */
  readonly joinInOrder: string;
  /** Condition that a column contains a text, compared exactly. */
  readonly contains: (column: string, bind: string) => string;
  /** The larger of two values. */
  readonly greatest: (one: string, other: string) => string;
  /** The smaller of two values. */
  readonly least: (one: string, other: string) => string;
  /** The sum of a column, but at most `most`. 0 without rows. What is added up may be more than fits an integer of the database. */
  readonly limitedSum: (column: string, most: number) => string;
  /** Placed after an INSERT: if a row with this key exists, adds to its counts instead. @param limits the maximum of some counts. */
  readonly upsertAdd: (table: string, key: readonly string[], counts: readonly string[], limits?: Limits) => string;
  /** Whether UPDATE supports RETURNING. */
  readonly supportsReturning: boolean;
  /** Query that has a row if there is a table with the name bound to `bind`. */
  readonly tableNamed: (bind: string) => string;
  /**
   * The current time in ms since the epoch. With a shared database it is the database's time, because the clocks of the instances
   * differ.
   */
  readonly now: (bind: string) => string;
  /** Placed after a SELECT in a transaction: locks the rows until the transaction ends. */
  readonly forUpdate: string;
}

/** By the names of columns. */
type Limits = Readonly<Record<string, number>>;

const minOf = (one: string, other: string) => `MIN(${one}, ${other})`;
const leastOf = (one: string, other: string) => `LEAST(${one}, ${other})`;

const limitedSumOf = (column: string, most: number) => leastOf(`COALESCE(SUM(${column}), 0)`, String(most));

/** `SET` clauses. @param ofNew how the column of the new row is named. */
function additions(
  counts: readonly string[],
  ofOld: (count: string) => string,
  ofNew: (count: string) => string,
  least: Dialect['least'],
  limits: Limits = {},
): string {
  const sumOf = (count: string) => {
    const sum = `${ofOld(count)} + ${ofNew(count)}`;
    const limit = limits[count];
    return limit === undefined ? sum : least(sum, String(limit));
  };
  return counts.map((count) => `${count} = ${sumOf(count)}`).join(', ');
}

const standardUpsertAdd =
  (least: Dialect['least']): Dialect['upsertAdd'] =>
  (table, key, counts, limits) =>
    `ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${additions(
      counts,
      (it) => `${table}.${it}`,
      (it) => `excluded.${it}`,
      least,
      limits,
    )}`;

export const sqlite: Dialect = {
  name: 'sqlite',
  indexHint: (index) => `INDEXED BY ${index}`,
  rowsIn: (table, column, list) => `json_each(${list}) AS listed CROSS JOIN ${table} ON ${column} = listed.value`,
  textsIn: (list) => `SELECT value FROM json_each(${list})`,
  joinInOrder: 'CROSS JOIN',
  // LIKE also ignores case; with a million names it takes a fifth longer.
  contains: (column, bind) => `INSTR(${column}, ${bind}) > 0`,
  greatest: (one, other) => `MAX(${one}, ${other})`,
  least: minOf,
  // SUM of whole numbers fails if they are too many. TOTAL adds floating-point numbers, which are exact up to `most`.
  limitedSum: (column, most) => `CAST(MIN(TOTAL(${column}), ${most}) AS INTEGER)`,
  upsertAdd: standardUpsertAdd(minOf),
  supportsReturning: true,
  tableNamed: (bind) => `SELECT name FROM sqlite_master WHERE type = 'table' AND name = ${bind}`,
  now: (bind) => bind,
  forUpdate: '', // There is a single writer, which the transaction holds.
};

export const postgres: Dialect = {
  name: 'postgres',
  indexHint: () => '', // PostgreSQL chooses by statistics and needs no hint.
  rowsIn: (table, column, list) =>
    `json_array_elements_text(CAST(${list} AS json)) AS listed(value) JOIN ${table} ON ${column} = listed.value`,
  textsIn: (list) => `SELECT value FROM json_array_elements_text(CAST(${list} AS json)) AS listed(value)`,
  joinInOrder: 'JOIN', // PostgreSQL chooses by statistics.
  contains: (column, bind) => `POSITION(${bind} IN ${column}) > 0`,
  greatest: (one, other) => `GREATEST(${one}, ${other})`,
  least: leastOf,
  limitedSum: limitedSumOf,
  upsertAdd: standardUpsertAdd(leastOf),
  supportsReturning: true,
  tableNamed: (bind) => `SELECT oid FROM pg_class WHERE oid = to_regclass(${bind})`,
  now: () => 'CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)',
  forUpdate: 'FOR UPDATE',
};

const MYSQL_TEXT = 'CONVERT(listed.value USING utf8mb4) COLLATE utf8mb4_bin';
const mysqlListed = (list: string) => `JSON_TABLE(${list}, '$[*]' COLUMNS (value VARCHAR(64) PATH '$')) AS listed`;

/** MySQL and MariaDB. */
export const mysql: Dialect = {
  name: 'mysql',
  indexHint: (index) => `FORCE INDEX (${index})`,
  rowsIn: (table, column, list) => `${mysqlListed(list)} JOIN ${table} ON ${column} = ${MYSQL_TEXT}`,
  textsIn: (list) => `SELECT ${MYSQL_TEXT} AS value FROM ${mysqlListed(list)}`,
  joinInOrder: 'STRAIGHT_JOIN',
  contains: (column, bind) => `LOCATE(${bind}, ${column}) > 0`,
  greatest: (one, other) => `GREATEST(${one}, ${other})`,
  least: leastOf,
  limitedSum: limitedSumOf,
  upsertAdd: (_table, _key, counts, limits) =>
    `ON DUPLICATE KEY UPDATE ${additions(
      counts,
      (it) => it,
      (it) => `VALUES(${it})`,
      leastOf,
      limits,
    )}`,
  supportsReturning: false,
  tableNamed: (bind) =>
    `SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ${bind}`,
  now: () => 'CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)',
  forUpdate: 'FOR UPDATE',
};
