import { type Bind, type Database, type SqlTransaction } from './database.js';
import { sqlite } from './dialect.js';
import { withStoreErrors } from './failures.js';
import { SqliteReader, SqliteWriter } from './sqlite.js';

/**
 * SQLite database without Sequelize, so without migrations. Transactions queue for the single writer: parallel ones would block each other in the few
 * threads of libuv until nothing moves (5 of 60 succeeded, after 73 s).
 */
export class PlainSqliteDatabase implements Database {
  readonly dialect = sqlite;
  readonly writer: SqliteWriter;
  readonly #reader: SqliteReader;
  #lastWriter: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    this.#reader = new SqliteReader(path);
    this.writer = new SqliteWriter(path);
  }

  get sequelize(): never {
    throw new Error('this process makes no migrations');
  }

  inTransaction(): never {
    return this.sequelize;
  }

  get statements(): number {
    return this.#reader.statements + this.writer.statements;
  }

  select<Row extends object>(sql: string, bind: Bind = {}): Promise<Row[]> {
    return withStoreErrors(this.#reader.all<Row>(sql, bind));
  }

  /** Runs after all earlier transactions. */
  transact<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T> {
    const turn = this.#lastWriter.then(() => withStoreErrors(transaction(this.writer, work)));
    this.#lastWriter = turn.catch(() => undefined);
    return turn;
  }

  prioritySelect<Row extends object>(sql: string, bind: Bind = {}): Promise<Row[]> {
    return this.select<Row>(sql, bind);
  }

  async close(): Promise<void> {
    await this.#lastWriter;
    await this.writer.close();
    await this.#reader.close();
  }
}

/** Runs `work` in a transaction of the writing connection. */
export function transaction<T>(writer: SqliteWriter, work: (tx: SqlTransaction) => Promise<T>): Promise<T> {
  return writer.transact(() =>
    work({
      dialect: sqlite,
      select: (sql, bind) => writer.all(sql, bind),
      execute: (sql, bind) => writer.run(sql, bind),
    }),
  );
}
