import { DATABASE_WAITS, type DatabaseWaits } from '../../daemon/store/sql/waits.js';

/**
 * As shipped, until the test says that the database is away: then it is given up sooner, so that the test need not wait for it.
 * While it is there even a busy machine answers in time.
 */
export class TestWaits implements DatabaseWaits {
  connectMs = DATABASE_WAITS.connectMs;
  connectAsideMs = DATABASE_WAITS.connectAsideMs;
  answerMs = DATABASE_WAITS.answerMs;
  lookEveryMs = DATABASE_WAITS.lookEveryMs;
  statementMs = DATABASE_WAITS.statementMs;
  pauseMs = DATABASE_WAITS.pauseMs;
  firstTryMs = DATABASE_WAITS.firstTryMs;

  beShort(): void {
    this.answerMs = 300;
    this.lookEveryMs = 150;
  }

  beAsShipped(): void {
    Object.assign(this, DATABASE_WAITS);
  }
}
