import { DATABASE_TIMEOUTS, type DatabaseTimeouts } from '../../daemon/store/sql/database.js';

/**
 * The default timeouts, until the test declares the database unavailable: then they are shorter, so that the test need not wait. While it
 * is available, even a busy machine responds in time.
 */
export class TestDatabaseTimeouts implements DatabaseTimeouts {
  connectMs = DATABASE_TIMEOUTS.connectMs;
  priorityConnectMs = DATABASE_TIMEOUTS.priorityConnectMs;
  probeMs = DATABASE_TIMEOUTS.probeMs;
  checkEveryMs = DATABASE_TIMEOUTS.checkEveryMs;
  statementMs = DATABASE_TIMEOUTS.statementMs;
  serverStatementMs = DATABASE_TIMEOUTS.serverStatementMs;
  idleTransactionMs = DATABASE_TIMEOUTS.idleTransactionMs;
  firstAttemptMs = DATABASE_TIMEOUTS.firstAttemptMs;

  shorten(): void {
    this.probeMs = 300;
    this.checkEveryMs = 150;
  }

  reset(): void {
    Object.assign(this, DATABASE_TIMEOUTS);
  }
}
