import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import sqlite3, { type Statement } from 'sqlite3';
import { ConcurrencyLimit } from '../../core/concurrency-limit.js';
import { lockFile } from '../lock.js';
import { requireSqlite } from '../sqlite-available.js';
import type { Bind, SqlTransaction } from './database.js';
import { sqlite } from './dialect.js';

/*
 * WAL allows reads while the single writer writes. FULL makes COMMIT wait for the disk, so that acknowledged changes survive a
 * power failure. Sequelize, which migrates, opens a connection for each transaction and calls no hook for it on SQLite;
 * so the driver itself sets up every connection before its first use. A long read, such as a backup, makes the WAL grow; without a
 * size limit it would never shrink again.
 */
const PRAGMAS = `
  PRAGMA busy_timeout = 5000;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA foreign_keys = ON;
  PRAGMA journal_size_limit = 16777216;
`;

/**
 * sqlite3 never calls the `close` callback of a database that failed to open. A caller would wait forever, and Node.js would end
 * the process with exit code 13 and no message. This class calls back at once, because there is nothing to close.
 */
class ClosableDatabase extends sqlite3.Database {
  #failedToOpen = false;

  constructor(path: string, mode: number, callback: (error: Error | null) => void) {
    super(path, mode, (error) => {
      this.#failedToOpen = error !== null;
      callback(error);
    });
  }

  override close(callback?: (error: Error | null) => void): void {
    if (this.#failedToOpen) process.nextTick(() => callback?.(null));
    else super.close(callback);
  }
}

class PreparedDatabase extends ClosableDatabase {
  constructor(path: string, mode: number, callback: (error: Error | null) => void) {
    super(path, mode, (error) => {
      if (error) callback(error);
      else this.exec(PRAGMAS, callback);
    });
  }
}

/** sqlite3 for Sequelize's `dialectModule`. */
export const preparedSqlite3 = { ...sqlite3, Database: PreparedDatabase };

/** A connection without Sequelize, opened by its first statement. */
class LazyConnection {
  readonly #open: () => Promise<ClosableDatabase>;
  #connection: Promise<ClosableDatabase> | null = null;
  /** Statements sent so far. */
  statements = 0;

  /** @param file the path of a file, which is created if it does not exist; or the URI of one that is only read, and not changed in any way. */
  constructor(file: string | URL) {
    this.#open =
      file instanceof URL
        ? () => open(ClosableDatabase, file.href, sqlite3.OPEN_READONLY | sqlite3.OPEN_URI)
        : () => open(PreparedDatabase, file, sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE);
  }

  protected async opened(): Promise<ClosableDatabase> {
    this.statements += 1;
    this.#connection ??= this.#open();
    return this.#connection.catch((error: unknown) => {
      this.#connection = null; // The next statement tries again.
      throw error;
    });
  }

  /** The next statement opens a new one. @param statements those that were prepared on it. */
  async close(statements: readonly Statement[] = []): Promise<void> {
    const connection = this.#connection;
    this.#connection = null;
    await Promise.all(statements.map((statement) => new Promise((resolve) => statement.finalize(resolve))));
    const open = await connection?.catch(() => null);
    if (open) await closed(open);
  }
}

/**
 * The only writing connection of this process. It stays open and keeps its statements prepared. Through Sequelize, each transaction
 * would open a connection and compile every statement again: five times the work, for every few hundred uses of a capped token.
 */
export class SqliteWriter extends LazyConnection {
  readonly #prepared = new Map<string, PreparedStatement>();
  /** Transactions take turns: parallel ones would block each other in the few threads of libuv until nothing moves (5 of 60 succeeded, after 73 s). */
  readonly #turns = new ConcurrencyLimit(1);

  /** Runs `work` in a transaction, after all earlier ones. An error rolls it back. */
  transact<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T> {
    return this.#turns.run(() => this.#transact(work));
  }

  async #transact<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T> {
    try {
      await this.run('BEGIN IMMEDIATE');
      const result = await work({
        dialect: sqlite,
        select: (sql, bind) => this.all(sql, bind),
        execute: (sql, bind) => this.run(sql, bind),
      });
      await this.run('COMMIT');
      return result;
    } catch (error) {
      // If ROLLBACK fails, closing the connection rolls back, and no later transaction inherits the state.
      await this.run('ROLLBACK').catch(() => this.close());
      throw error;
    }
  }

  /** @returns the number of changed rows. */
  async run(sql: string, bind: Bind = {}): Promise<number> {
    const { statement, names } = await this.#statement(sql);
    return new Promise((resolve, reject) => {
      statement.run(inOrder(names, bind), function (error) {
        if (error) reject(error);
        else resolve(this.changes);
      });
    });
  }

  async all<Row extends object>(sql: string, bind: Bind = {}): Promise<Row[]> {
    const { statement, names } = await this.#statement(sql);
    return new Promise((resolve, reject) => {
      statement.all<Row>(inOrder(names, bind), (error, rows) => {
        if (error) reject(error);
        else resolve(rows);
      });
    });
  }

  /** Closes the connection after all transactions. */
  closeWhenIdle(): Promise<void> {
    return this.#turns.run(() => this.close());
  }

  override async close(): Promise<void> {
    const statements = [...this.#prepared.values()].map(({ statement }) => statement);
    this.#prepared.clear();
    await super.close(statements);
  }

  async #statement(sql: string): Promise<PreparedStatement> {
    const prepared = this.#prepared.get(sql);
    if (prepared) {
      this.statements += 1;
      return prepared;
    }
    const connection = await this.opened();
    const statement = await new Promise<Statement>((resolve, reject) => {
      const made: Statement = connection.prepare(sql, (error: Error | null) => {
        if (error) reject(error);
        else resolve(made);
      });
    });
    const made = { statement, names: namesIn(sql) };
    this.#prepared.set(sql, made);
    return made;
  }
}

interface PreparedStatement {
  statement: Statement;
  /** Of its values, in the order in which SQLite numbers them. */
  names: readonly string[];
}

/**
 * Values are bound by number. SQLite looks for a name among all names of the statement: with the thousand values of some rows, that would
 * take longer than inserting them.
 */
const namesIn = (sql: string): string[] => [...new Set(Array.from(sql.matchAll(/\$(\w+)/g), ([, name = '']) => name))];
const inOrder = (names: readonly string[], bind: Bind) => names.map((name) => bind[name]);

/**
 * Tries, without waiting, how often another process is writing. Nothing is written.
 *
 * @returns the part of the tries at which the database was locked for writing, from 0 to 1.
 */
export async function shareOfWriting(path: string, tries: number, everyMs: number): Promise<number> {
  const connection = await open(ClosableDatabase, path, sqlite3.OPEN_READWRITE);
  const run = (sql: string) =>
    new Promise<boolean>((resolve, reject) => {
      connection.exec(sql, (error: (Error & { code?: string }) | null) => {
        if (error && error.code !== 'SQLITE_BUSY') reject(error);
        else resolve(error === null);
      });
    });
  try {
    await run('PRAGMA busy_timeout = 0');
    let held = 0;
    for (let n = 0; n < tries; n++) {
      if (await run('BEGIN IMMEDIATE')) await run('ROLLBACK');
      else held += 1;
      await sleep(everyMs);
    }
    return held / tries;
  } finally {
    await closed(connection);
  }
}

/** A connection for reading. */
export class SqliteReader extends LazyConnection {
  async all<Row extends object>(sql: string, bind: Bind = {}): Promise<Row[]> {
    const connection = await this.opened();
    return new Promise((resolve, reject) => {
      connection.all<Row>(sql, inOrder(namesIn(sql), bind), (error: Error | null, rows: Row[]) => {
        if (error) reject(error);
        else resolve(rows);
      });
    });
  }
}

const closed = (connection: ClosableDatabase): Promise<void> =>
  new Promise((resolve) => {
    connection.close(() => {
      resolve();
    });
  });

function open(Connection: typeof ClosableDatabase, path: string, mode: number): Promise<ClosableDatabase> {
  return new Promise((resolve, reject) => {
    const opened = new Connection(path, mode, (error) => {
      if (!error) {
        resolve(opened);
        return;
      }
      // It is open if only the pragmas failed, as they do on a file that is not a database.
      opened.close(() => {
        reject(error);
      });
    });
  });
}

/** The part of Sequelize's connection manager for SQLite that is fixed here. */
interface Connections {
  connections: Record<string, sqlite3.Database>;
  destroyConnection(connection: sqlite3.Database & { uuid?: string }): Promise<void>;
}

/**
 * Fixes how Sequelize closes a connection after a failed COMMIT or ROLLBACK. On SQLite, Sequelize looks for it in a pool that never
 * contained it and leaves it open, together with its transaction: no other connection could write any more. Closing it rolls the
 * transaction back.
 */
export function closeBrokenConnections(connectionManager: unknown): void {
  const manager = connectionManager as Connections;
  manager.destroyConnection = (connection) => {
    if (connection.uuid !== undefined) Reflect.deleteProperty(manager.connections, connection.uuid);
    return new Promise((resolve) => {
      connection.close(() => {
        resolve();
      });
    });
  };
}

/**
 * Locks a SQLite database for this process, under all names of the file. @returns a function that releases the lock. @throws
 * {PathInUse} @throws {SqliteUnavailable}
 */
export async function lockDatabase(databasePath: string): Promise<() => Promise<void>> {
  requireSqlite();
  mkdirSync(dirname(databasePath), { recursive: true, mode: 0o700 });
  return lockFile(databasePath);
}
