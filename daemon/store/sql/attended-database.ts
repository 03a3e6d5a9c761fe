/**
 * The primary's database, on which its workers hold locks too. A worker that is frozen in the middle of a transaction holds its locks until it ends,
 * and everything that the primary writes would wait for them: also the change that would find out that it is frozen. So the owner of the workers
 * hears of statements that take long.
 */
import type { Sequelize, Transaction } from 'sequelize';
import type { Clock } from '../../core/ports.js';
import type { Bind, Database, SqlTransaction, StatementTimeout } from './database.js';
import type { Dialect } from './dialect.js';

/** Longer than nearly all statements take. */
const WAITS_AFTER_MS = 250;

/**
 * Called while statements take long, again as long as they do.
 *
 * @param isWaiting whether one of them is still not done.
 * @returns a promise that does not reject.
 */
export type OnWaiting = (isWaiting: () => boolean) => Promise<void>;

export class AttendedDatabase implements Database {
  readonly #database: Database;
  readonly #clock: Pick<Clock, 'after'>;
  readonly #onWaiting: OnWaiting;
  /** What has been pending for `WAITS_AFTER_MS`. */
  readonly #waiting = new Set<Promise<unknown>>();
  #isAttending = false;

  constructor(database: Database, clock: Pick<Clock, 'after'>, onWaiting: OnWaiting) {
    this.#database = database;
    this.#clock = clock;
    this.#onWaiting = onWaiting;
  }

  get dialect(): Dialect {
    return this.#database.dialect;
  }

  loadSequelize(): Promise<Sequelize> {
    return this.#database.loadSequelize();
  }

  get statements(): number {
    return this.#database.statements;
  }

  select<Row extends object>(sql: string, bind?: Bind, timeout?: StatementTimeout): Promise<Row[]> {
    return this.#attended(this.#database.select<Row>(sql, bind, timeout));
  }

  prioritySelect<Row extends object>(sql: string, bind?: Bind): Promise<Row[]> {
    return this.#attended(this.#database.prioritySelect<Row>(sql, bind));
  }

  transact<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T> {
    return this.#attended(this.#database.transact(work));
  }

  inTransaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.#attended(this.#database.inTransaction(work));
  }

  close(): Promise<void> {
    return this.#database.close();
  }

  async #attended<T>(work: Promise<T>): Promise<T> {
    const cancel = this.#clock.after(WAITS_AFTER_MS, () => {
      this.#waiting.add(work);
      void this.#attend();
    });
    try {
      return await work;
    } finally {
      cancel();
      this.#waiting.delete(work);
    }
  }

  async #attend(): Promise<void> {
    if (this.#isAttending) return;
    this.#isAttending = true;
    while (this.#waiting.size > 0) {
      const these = [...this.#waiting];
      await this.#onWaiting(() => these.some((work) => this.#waiting.has(work)));
      // Not again at once: what takes long may do so for another reason.
      if (this.#waiting.size > 0) await new Promise<void>((resolve) => this.#clock.after(WAITS_AFTER_MS, resolve));
    }
    this.#isAttending = false;
  }
}
