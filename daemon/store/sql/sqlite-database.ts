import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { QueryTypes, Sequelize, Transaction } from 'sequelize';
import sqlite3 from 'sqlite3';
import type { Database } from './database.js';
import { withStoreErrors } from './failures.js';
import { PlainSqliteDatabase } from './plain-sqlite-database.js';
import { closableSqlite3, closeBrokenConnections, preparedSqlite3 } from './sqlite.js';

/** SQLite database that can be migrated, through Sequelize. */
export class SqliteDatabase extends PlainSqliteDatabase {
  readonly #sequelize: Sequelize;

  constructor(path: string) {
    super(path);
    this.#sequelize = new Sequelize({
      dialect: 'sqlite',
      storage: path,
      dialectModule: preparedSqlite3,
      logging: false,
    });
    closeBrokenConnections(this.#sequelize.connectionManager);
  }

  override get sequelize(): Sequelize {
    return this.#sequelize;
  }

  override inTransaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.#sequelize.transaction({ type: Transaction.TYPES.IMMEDIATE }, work);
  }

  override async close(): Promise<void> {
    await super.close();
    await this.#sequelize.close();
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
