import type { Sequelize, Transaction } from 'sequelize';
import type { Dialect } from './dialect.js';

export type Bind = Record<string, string | number | boolean | null>;

/**
 * Timeout class of a statement. `usual`: statements that a healthy database executes almost at once; the connection is closed after
 * 10 s. `long`: reports, lists and changes of many rows, which the server itself ends after 30 s.
 */
export type StatementTimeout = 'usual' | 'long';

/** Executes queries: on the database, or within a transaction. Values are always passed as binds (`$name`), never in the SQL text. */
export interface Reader {
  readonly dialect: Dialect;
  /** @param timeout default: `usual` in a transaction, otherwise `long`. */
  select<Row extends object>(sql: string, bind?: Bind, timeout?: StatementTimeout): Promise<Row[]>;
}

/** A transaction. All writes take place in transactions. */
export interface SqlTransaction extends Reader {
  /**
   * @param timeout default: `usual`.
   * @returns the number of rows that were inserted, updated or deleted.
   */
  execute(sql: string, bind?: Bind, timeout?: StatementTimeout): Promise<number>;
}

/** The SQL database. Its methods throw {StoreUnavailable}, and {StoreConflict} if a unique value is already taken. */
export interface Database extends Reader {
  /** Only for migrations. On SQLite, nothing else needs it, and it takes a tenth of the daemon's memory. */
  loadSequelize(): Promise<Sequelize>;
  /** Runs `work` in a transaction of Sequelize. Only for migrations. */
  inTransaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /** Statements sent so far. */
  readonly statements: number;
  /** Runs `work` in a transaction. An error rolls it back. */
  transact<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T>;
  /**
   * Runs a short query on a separate connection, which no long statement can block. If the query takes longer than two seconds, the
   * database counts as unreachable: the query and all pending statements fail, and new connections are made.
   */
  prioritySelect<Row extends object>(sql: string, bind?: Bind): Promise<Row[]>;
  close(): Promise<void>;
}

/** Timeouts for a database server. */
export interface DatabaseTimeouts {
  /** To connect or to get a connection from the pool, in ms. Short, so that a client soon gets an error. */
  connectMs: number;
  /** The same for the priority connection. Longer than `probeMs`, so that a connection that takes too long counts as no response. */
  priorityConnectMs: number;
  /** For a query that any healthy server answers at once, in ms. */
  probeMs: number;
  /** While statements are pending, how often the server is probed, in ms. */
  checkEveryMs: number;
  /**
   * For a statement, in ms. A longer wait means a dead connection: the server itself gives up waiting for a lock after 5 s, and a
   * statement after `serverStatementMs`.
   */
  statementMs: Record<StatementTimeout, number>;
  /** After how long the server itself ends a statement, in ms; MariaDB takes whole seconds. A report over a year takes long. */
  serverStatementMs: number;
  /**
   * How long the server lets a transaction be idle, in ms; MariaDB takes whole seconds. A process that hangs, or that the network
   * no longer reaches, blocks all others that need the same rows. So this is shorter than their lock timeout. Our transactions
   * never pause for more than an instant.
   */
  idleTransactionMs: number;
  /** For the first attempt at startup, in ms. A configuration error is reported soon; the daemon then continues to retry. */
  firstAttemptMs: number;
}

/** The defaults. */
export const DATABASE_TIMEOUTS: Readonly<DatabaseTimeouts> = {
  connectMs: 2_000,
  priorityConnectMs: 3_000,
  probeMs: 2_000,
  checkEveryMs: 1_000,
  statementMs: { usual: 10_000, long: 40_000 },
  serverStatementMs: 30_000,
  idleTransactionMs: 3_000,
  firstAttemptMs: 5_000,
};
