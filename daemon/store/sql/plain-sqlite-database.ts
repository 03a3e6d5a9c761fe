import { type Bind, type Database, type SqlTransaction } from './database.js';
import { sqlite } from './dialect.js';
import { withStoreErrors } from './failures.js';
import { SqliteReader, SqliteWriter } from './sqlite.js';

/** SQLite database without Sequelize, so without migrations. */
export class PlainSqliteDatabase implements Database {
  readonly dialect = sqlite;
  readonly writer: SqliteWriter;
  readonly #reader: SqliteReader;

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
    return withStoreErrors(this.writer.transact(work));
  }

  prioritySelect<Row extends object>(sql: string, bind: Bind = {}): Promise<Row[]> {
    return this.select<Row>(sql, bind);
  }

  async close(): Promise<void> {
    await this.writer.closeWhenIdle();
    await this.#reader.close();
  }
}
