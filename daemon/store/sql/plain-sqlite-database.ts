import type { Sequelize, Transaction } from 'sequelize';
import type { Bind, Database, SqlTransaction, StatementTimeout } from './database.js';
import { sqlite } from './dialect.js';
import { withStoreErrors } from './failures.js';
import { SqliteReader, SqliteWriter } from './sqlite.js';

/** SQLite database without Sequelize, so without migrations. */
export class PlainSqliteDatabase implements Database {
  readonly dialect = sqlite;
  readonly writer: SqliteWriter;
  /** Each has a connection of its own: a short statement would wait for a report. */
  readonly readers: Readonly<Record<StatementTimeout, SqliteReader>>;

  constructor(path: string) {
    this.writer = new SqliteWriter(path);
    this.readers = { usual: new SqliteReader(path), long: new SqliteReader(path) };
  }

  get sequelize(): Sequelize {
    throw new Error('this process makes no migrations');
  }

  inTransaction<T>(_work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return Promise.reject(new Error('this process makes no migrations'));
  }

  get statements(): number {
    const { usual, long } = this.readers;
    return usual.statements + long.statements + this.writer.statements;
  }

  select<Row extends object>(sql: string, bind: Bind = {}, timeout: StatementTimeout = 'long'): Promise<Row[]> {
    return withStoreErrors(this.readers[timeout].all<Row>(sql, bind));
  }

  /** Runs after all earlier transactions. */
  transact<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T> {
    return withStoreErrors(this.writer.transact(work));
  }

  prioritySelect<Row extends object>(sql: string, bind: Bind = {}): Promise<Row[]> {
    return this.select<Row>(sql, bind, 'usual');
  }

  async close(): Promise<void> {
    await this.writer.closeWhenIdle();
    await Promise.all([this.readers.usual.close(), this.readers.long.close()]);
  }
}
