import { type QueryInterface, type Sequelize, Transaction } from 'sequelize';

/** Methods of Sequelize's transactions that its types do not declare. */
interface TransactionInternals {
  prepareEnvironment(usesLocalStorage: boolean): Promise<void>;
  /** Returns the connection to the pool. */
  cleanup(): void;
  /** Closes the connection. */
  forceCleanup(): Promise<void>;
}

/** Waits for a statement, with the timeout of its connection. */
type Tracker = (statement: Promise<void>, connection: unknown) => Promise<void>;

/**
 * Sequelize's transaction without console output. Sequelize would write to the console whenever a transaction ends because its
 * connection ended.
 */
class QuietTransaction extends Transaction {
  readonly #on: Sequelize;
  readonly #track: Tracker;
  #isEnded = false;

  constructor(on: Sequelize, track: Tracker) {
    super(on, {});
    this.#on = on;
    this.#track = track;
  }

  /** Called by Sequelize. */
  begin(): Promise<void> {
    const shipped = Transaction.prototype as unknown as { begin: (this: Transaction) => Promise<void> };
    return this.#track(shipped.begin.call(this), this.#connection);
  }

  get #connection(): unknown {
    return (this as unknown as { connection: unknown }).connection;
  }

  get internals(): TransactionInternals {
    return this as unknown as TransactionInternals;
  }

  override commit(): Promise<void> {
    return this.#end((queries) => queries.commitTransaction(this));
  }

  /**
   * Rolls back only once. After a deadlock on MySQL, Sequelize rolls back on its own and returns the connection to the pool. A
   * second ROLLBACK would reach the next transaction on that connection.
   */
  override async rollback(): Promise<void> {
    if (this.#isEnded) return;
    await this.#end((queries) => queries.rollbackTransaction(this));
  }

  async #end(how: (queries: QueryInterface) => Promise<void>): Promise<void> {
    this.#isEnded = true;
    try {
      await this.#track(how(this.#on.getQueryInterface()), this.#connection);
    } catch (error) {
      await this.internals.forceCleanup(); // Rolls back what was not committed.
      throw error;
    }
    this.internals.cleanup();
  }
}

/**
 * Runs `work` in a transaction. An error rolls it back.
 *
 * @param track waits for BEGIN, COMMIT and ROLLBACK.
 */
export async function inTransaction<T>(
  sequelize: Sequelize,
  work: (transaction: Transaction) => Promise<T>,
  track: Tracker = (statement) => statement,
): Promise<T> {
  const transaction = new QuietTransaction(sequelize, track);
  await transaction.internals.prepareEnvironment(false);
  let result: T;
  try {
    result = await work(transaction);
  } catch (error) {
    await transaction.rollback().catch(() => undefined);
    throw error;
  }
  await transaction.commit();
  return result;
}
