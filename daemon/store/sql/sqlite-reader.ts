/** A SQLite database that is only looked at: nothing beside it is made, and nothing in it is changed. */
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { QueryTypes, Sequelize } from 'sequelize';
import sqlite3 from 'sqlite3';
import type { Database } from './database.js';
import { explained } from './failures.js';
import { closableSqlite3 } from './sqlite.js';

export type ReadOnlyDatabase = Pick<Database, 'sequelize' | 'select' | 'inTransaction' | 'close'>;

/**
 * Opens what is there. Where nobody has it open there is no WAL, and a reader would make one for itself: then the file is read as
 * one that cannot change.
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
    select: (sql, bind = {}) => explained(sequelize.query(sql, { bind, type: QueryTypes.SELECT })),
    inTransaction: () => Promise.reject(new Error('it is only looked at')),
    close: () => sequelize.close(),
  };
}
