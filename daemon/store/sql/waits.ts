/** How long a database server is waited for. */
import type { Patience } from './database.js';

export interface DatabaseWaits {
  /** To connect, or to wait for a connection that others have, in ms. Whoever asks us is told soon that it takes longer. */
  connectMs: number;
  /** The same for the connection aside: longer than `answerMs`, so that a connection that is not made in time counts as no answer. */
  connectAsideMs: number;
  /** For what any server that lives answers at once, in ms. */
  answerMs: number;
  /** While anybody waits, the server is asked so often whether it lives, in ms. */
  lookEveryMs: number;
  /**
   * For the answer to a statement, in ms. What takes longer waits on a connection that leads nowhere: the server gives up a lock after
   * 5 s, and a statement after 30 s.
   */
  statementMs: Record<Patience, number>;
  /**
   * After which the server ends a transaction in which nothing happens, in ms; MariaDB takes whole seconds. A process that stands still,
   * or that no network reaches any more, holds up all who want the same rows meanwhile. So this is shorter than they wait for a lock;
   * no transaction of ours pauses for more than an instant.
   */
  pauseMs: number;
  /** At the start of a daemon, in ms. Whoever starts it is told soon whether it is configured rightly; it goes on trying afterwards. */
  firstTryMs: number;
}

/** As shipped. */
export const DATABASE_WAITS: Readonly<DatabaseWaits> = {
  connectMs: 2_000,
  connectAsideMs: 3_000,
  answerMs: 2_000,
  lookEveryMs: 1_000,
  statementMs: { usual: 10_000, long: 40_000 },
  pauseMs: 3_000,
  firstTryMs: 5_000,
};
