import { existsSync, realpathSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import type { Sequelize, Transaction } from 'sequelize';
import type { Bind, Database, SqlTransaction, StatementTimeout } from './database.js';
import { sqlite } from './dialect.js';
import { withStoreErrors } from './failures.js';
import { closeBrokenConnections, preparedSqlite3, SqliteReader, SqliteWriter } from './sqlite.js';

/** SQLite database, through Sequelize only while it is migrated. */
export class SqliteDatabase implements Database {
  readonly dialect = sqlite;
  readonly writer: SqliteWriter;
  /** Each has a connection of its own: a short statement would wait for a report. */
  readonly readers: Readonly<Record<StatementTimeout, SqliteReader>>;
  readonly #path: string;
  #sequelize: Promise<Sequelize> | null = null;

  constructor(path: string) {
    this.#path = path;
    this.writer = new SqliteWriter(path);
    this.readers = { usual: new SqliteReader(path), long: new SqliteReader(path) };
  }

  loadSequelize(): Promise<Sequelize> {
    this.#sequelize ??= openSequelize(this.#path);
    return this.#sequelize;
  }

  async inTransaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const { Transaction } = await import('sequelize');
    const sequelize = await this.loadSequelize();
    return sequelize.transaction({ type: Transaction.TYPES.IMMEDIATE }, work);
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
    await (await this.#sequelize)?.close();
  }
}

async function openSequelize(path: string): Promise<Sequelize> {
  const { Sequelize } = await import('sequelize');
  const sequelize = new Sequelize({
    dialect: 'sqlite',
    storage: path,
    dialectModule: preparedSqlite3,
    logging: false,
  });
  closeBrokenConnections(sequelize.connectionManager);
  return sequelize;
}

/** Access that creates no files next to the database and changes nothing. */
export type ReadOnlyDatabase = Pick<Database, 'dialect' | 'select' | 'close'>;

/** For access that does not change the database. See `openSqliteReader`. */
export function uriForReading(path: string): URL {
  const file = existsSync(path) ? realpathSync(path) : path; // The log is beside the file, not beside a link to it.
  const query = existsSync(`${file}-wal`) ? 'mode=ro' : 'mode=ro&immutable=1';
  return new URL(`?${query}`, pathToFileURL(file));
}

/**
 * Opens an existing database. If no process has it open there is no WAL file, and a reader would create one. The file is then
 * opened as immutable.
 *
 * @param when for a reader that stays open while another process may begin to write.
 */
export function openSqliteReader(path: string, when?: 'while others write'): ReadOnlyDatabase {
  const uri = when === undefined ? uriForReading(path) : new URL('?mode=ro', pathToFileURL(path));
  const reader = new SqliteReader(uri);
  return {
    dialect: sqlite,
    select: (sql, bind = {}) => withStoreErrors(reader.all(sql, bind)),
    close: () => reader.close(),
  };
}
