import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { QueryTypes, Sequelize, Transaction } from 'sequelize';
import sqlite3 from 'sqlite3';
import type { Bind, Database, SqlTransaction, StatementTimeout } from './database.js';
import { sqlite } from './dialect.js';
import { withStoreErrors } from './failures.js';
import { closableSqlite3, closeBrokenConnections, preparedSqlite3, SqliteReader, SqliteWriter } from './sqlite.js';

/** SQLite database that can be migrated. It reads and migrates through Sequelize. */
export class SqliteDatabase implements Database {
  readonly dialect = sqlite;
  readonly sequelize: Sequelize;
  readonly writer: SqliteWriter;
  /** For short statements, which would wait for a report on the other connection. */
  readonly reader: SqliteReader;
  #read = 0;

  constructor(path: string) {
    this.sequelize = new Sequelize({
      dialect: 'sqlite',
      storage: path,
      dialectModule: preparedSqlite3,
      // Only counted: logging the statement would log bind values.
      logging: () => {
        this.#read += 1;
      },
    });
    closeBrokenConnections(this.sequelize.connectionManager);
    this.writer = new SqliteWriter(path);
    this.reader = new SqliteReader(path);
  }

  get statements(): number {
    return this.#read + this.reader.statements + this.writer.statements;
  }

  select<Row extends object>(sql: string, bind: Bind = {}, timeout: StatementTimeout = 'long'): Promise<Row[]> {
    if (timeout === 'usual') return this.prioritySelect(sql, bind);
    return withStoreErrors(this.sequelize.query<Row>(sql, { bind, type: QueryTypes.SELECT }));
  }

  /** Runs after all earlier transactions. */
  transact<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T> {
    return withStoreErrors(this.writer.transact(work));
  }

  inTransaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.sequelize.transaction({ type: Transaction.TYPES.IMMEDIATE }, work);
  }

  prioritySelect<Row extends object>(sql: string, bind: Bind = {}): Promise<Row[]> {
    return withStoreErrors(this.reader.all<Row>(sql, bind));
  }

  async close(): Promise<void> {
    await this.writer.closeWhenIdle();
    await this.reader.close();
    await this.sequelize.close();
  }
}

/** Access that creates no files next to the database and changes nothing. */
export type ReadOnlyDatabase = Pick<Database, 'sequelize' | 'select' | 'inTransaction' | 'close'>;

/**
 * Opens an existing database. If no process has it open there is no WAL file, and a reader would create one. The file is then
 * opened as immutable.
 */
export function openSqliteReader(path: string): ReadOnlyDatabase {
  const query = existsSync(`${path}-wal`) ? 'mode=ro' : 'mode=ro&immutable=1';
  const sequelize = new Sequelize({
    dialect: 'sqlite',
    storage: `${pathToFileURL(path).href}?${query}`,
    dialectModule: closableSqlite3,
    dialectOptions: { mode: sqlite3.OPEN_READONLY | sqlite3.OPEN_URI },
    logging: false,
  });
  return {
    sequelize,
    select: (sql, bind = {}) => withStoreErrors(sequelize.query(sql, { bind, type: QueryTypes.SELECT })),
    inTransaction: () => Promise.reject(new Error('the database is open for reading only')),
    close: () => sequelize.close(),
  };
}
