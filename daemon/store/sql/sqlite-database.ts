import { QueryTypes, Sequelize, Transaction } from 'sequelize';
import { type Bind, type Connection, type Database } from './database.js';
import { sqlite } from './dialect.js';
import { explained } from './failures.js';
import { closeBrokenConnections, preparedSqlite3, SqliteWriter } from './sqlite.js';

/**
 * There is one writer at a time: parallel transactions block each other in libuv's few
 * threads until everything stands still (5 of 60 succeed, after 73 s), so they queue here.
 */
export class SqliteDatabase implements Database {
  readonly dialect = sqlite;
  readonly sequelize: Sequelize;
  readonly writer: SqliteWriter;
  #read = 0;
  #lastWriter: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    this.sequelize = new Sequelize({
      dialect: 'sqlite',
      storage: path,
      dialectModule: preparedSqlite3,
      // Only counted: a statement's text would bring bind values into a log.
      logging: () => {
        this.#read += 1;
      },
    });
    closeBrokenConnections(this.sequelize.connectionManager);
    this.writer = new SqliteWriter(path);
  }

  get statements(): number {
    return this.#read + this.writer.statements;
  }

  select<Row extends object>(sql: string, bind: Bind = {}): Promise<Row[]> {
    return explained(this.sequelize.query<Row>(sql, { bind, type: QueryTypes.SELECT }));
  }

  /** After those that came before. */
  transact<T>(work: (tx: Connection) => Promise<T>): Promise<T> {
    const { writer } = this;
    const turn = this.#lastWriter.then(() =>
      explained(
        writer.transact(() =>
          work({
            dialect: sqlite,
            select: (sql, bind) => writer.all(sql, bind),
            execute: (sql, bind) => writer.run(sql, bind),
          }),
        ),
      ),
    );
    this.#lastWriter = turn.catch(() => undefined);
    return turn;
  }

  inTransaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.sequelize.transaction({ type: Transaction.TYPES.IMMEDIATE }, work);
  }

  ask<Row extends object>(sql: string, bind: Bind = {}): Promise<Row[]> {
    return this.select<Row>(sql, bind);
  }

  async close(): Promise<void> {
    await this.#lastWriter;
    await this.writer.close();
    await this.sequelize.close();
  }
}
