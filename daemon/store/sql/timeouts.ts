/** Timeouts for a database server. */
import type { StatementTimeout } from './database.js';

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
   * statement after 30 s.
   */
  statementMs: Record<StatementTimeout, number>;
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
  idleTransactionMs: 3_000,
  firstAttemptMs: 5_000,
};
