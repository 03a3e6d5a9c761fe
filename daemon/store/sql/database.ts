import type { Sequelize, Transaction } from 'sequelize';
import type { Dialect } from './dialect.js';

export type Bind = Record<string, string | number | boolean | null>;

/**
 * How long an answer may take. `usual`: what any database that lives does in an instant; after 10 s the connection is given up.
 * `long`: reports, lists and changes of many rows, which the server itself ends after 30 s.
 */
export type Patience = 'usual' | 'long';

/** What can be asked: the database at large, or one transaction. Values go in as binds (`$name`), never as text. */
export interface Reader {
  readonly dialect: Dialect;
  /** @param patience of a transaction `usual` unless it is said, otherwise `long`. */
  select<Row extends object>(sql: string, bind?: Bind, patience?: Patience): Promise<Row[]>;
}

/** One transaction. Nothing is written outside of one. */
export interface Connection extends Reader {
  /**
   * @param patience `usual` unless it is said.
   * @returns how many rows were inserted, updated or deleted.
   */
  execute(sql: string, bind?: Bind, patience?: Patience): Promise<number>;
}

/**
 * The SQL database.
 *
 * @throws {StoreUnavailable} from each of its methods that ask it, and {StoreConflict} where a unique value is taken.
 */
export interface Database extends Reader {
  /** For migrations, and nobody else. */
  readonly sequelize: Sequelize;
  inTransaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /** Statements sent so far. */
  readonly statements: number;
  /** Runs `work` in a transaction of its own. An error takes everything back. */
  transact<T>(work: (tx: Connection) => Promise<T>): Promise<T>;
  /**
   * Puts a question that any database that lives answers at once, over a connection of its own that no long statement holds up. One
   * that takes longer than two seconds is taken for dead: this and all that waits for it fails, and new connections are made.
   */
  ask<Row extends object>(sql: string, bind?: Bind): Promise<Row[]>;
  close(): Promise<void>;
}
