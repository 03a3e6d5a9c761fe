/** What databases say differently. The statements of the stores are any database's but for these words. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres' | 'mysql';
  /** Goes behind a table and says which way to take to its rows, where a database left to itself collects and sorts all of them. */
  readonly by: (index: string) => string;
  /** `FROM` those rows of `table` alone whose `column` is in the JSON array bound to `list`, found one by one. */
  readonly among: (table: string, column: string, list: string) => string;
  /** Whether a column holds a text, letter by letter. */
  readonly contains: (column: string, bind: string) => string;
  /** The larger of two values. */
  readonly greatest: (one: string, other: string) => string;
  /** Goes behind an INSERT: where there is a row of that key already, adds to its counts instead. */
  readonly orAdd: (table: string, key: readonly string[], counts: readonly string[]) => string;
  /** Whether an UPDATE can say what became of its rows (`RETURNING`). */
  readonly returns: boolean;
  /** The time, in ms since the epoch: the database's own where several instances go by it, whose clocks differ. */
  readonly now: (bind: string) => string;
  /** Goes behind a SELECT in a transaction: nobody else changes these rows until it is over. */
  readonly forUpdate: string;
}

const orAddStandard: Dialect['orAdd'] = (table, key, counts) =>
  `ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${counts.map((it) => `${it} = ${table}.${it} + excluded.${it}`).join(', ')}`;

export const sqlite: Dialect = {
  name: 'sqlite',
  by: (index) => `INDEXED BY ${index}`,
  among: (table, column, list) => `json_each(${list}) AS listed CROSS JOIN ${table} ON ${column} = listed.value`,
  // LIKE, which folds case as well, takes a fifth more of a million names.
  contains: (column, bind) => `INSTR(${column}, ${bind}) > 0`,
  greatest: (one, other) => `MAX(${one}, ${other})`,
  orAdd: orAddStandard,
  returns: true,
  now: (bind) => bind,
  forUpdate: '', // It has one writer, and a transaction is it.
};

export const postgres: Dialect = {
  name: 'postgres',
  by: () => '', // It counts what is where, and finds the way by itself.
  among: (table, column, list) =>
    `json_array_elements_text(CAST(${list} AS json)) AS listed(value) JOIN ${table} ON ${column} = listed.value`,
  contains: (column, bind) => `POSITION(${bind} IN ${column}) > 0`,
  greatest: (one, other) => `GREATEST(${one}, ${other})`,
  orAdd: orAddStandard,
  returns: true,
  now: () => 'CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)',
  forUpdate: 'FOR UPDATE',
};

/** MySQL, and MariaDB, which understands the same. */
export const mysql: Dialect = {
  name: 'mysql',
  by: (index) => `FORCE INDEX (${index})`,
  among: (table, column, list) =>
    `JSON_TABLE(${list}, '$[*]' COLUMNS (value VARCHAR(64) PATH '$')) AS listed
     JOIN ${table} ON ${column} = CONVERT(listed.value USING utf8mb4) COLLATE utf8mb4_bin`,
  contains: (column, bind) => `LOCATE(${bind}, ${column}) > 0`,
  greatest: (one, other) => `GREATEST(${one}, ${other})`,
  orAdd: (_table, _key, counts) =>
    `ON DUPLICATE KEY UPDATE ${counts.map((it) => `${it} = ${it} + VALUES(${it})`).join(', ')}`,
  returns: false,
  now: () => 'CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)',
  forUpdate: 'FOR UPDATE',
};
