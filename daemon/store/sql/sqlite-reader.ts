/** Read-only access to a SQLite database: creates no files next to it and changes nothing. */
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { QueryTypes, Sequelize } from 'sequelize';
import sqlite3 from 'sqlite3';
import type { Database } from './database.js';
import { withStoreErrors } from './failures.js';
import { closableSqlite3 } from './sqlite.js';

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
