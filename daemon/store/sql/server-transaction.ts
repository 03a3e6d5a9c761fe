import { type QueryInterface, type Sequelize, Transaction } from 'sequelize';

/** What Sequelize's transactions are made of, beside what it tells of them. */
interface Parts {
  prepareEnvironment(usesLocalStorage: boolean): Promise<void>;
  /** Gives the connection back. */
  cleanup(): void;
  /** Ends the connection. */
  forceCleanup(): Promise<void>;
}

/** Waits for an answer over a connection. */
type Awaited = (answer: Promise<void>, connection: unknown) => Promise<void>;

/** Sequelize's own, which would write to the console whenever the end of a connection was the end of a transaction. */
class QuietTransaction extends Transaction {
  readonly #on: Sequelize;
  readonly #awaited: Awaited;
  #isEnded = false;

  constructor(on: Sequelize, awaited: Awaited) {
    super(on, {});
    this.#on = on;
    this.#awaited = awaited;
  }

  /** Called by Sequelize. */
  begin(): Promise<void> {
    const shipped = Transaction.prototype as unknown as { begin: (this: Transaction) => Promise<void> };
    return this.#awaited(shipped.begin.call(this), this.#connection);
  }

  get #connection(): unknown {
    return (this as unknown as { connection: unknown }).connection;
  }

  get parts(): Parts {
    return this as unknown as Parts;
  }

  override commit(): Promise<void> {
    return this.#end((queries) => queries.commitTransaction(this));
  }

  /**
   * Once: after a deadlock Sequelize does so by itself on MySQL, and gives the connection back. A second ROLLBACK would go to the
   * transaction of whoever has the connection by then.
   */
  override async rollback(): Promise<void> {
    if (this.#isEnded) return;
    await this.#end((queries) => queries.rollbackTransaction(this));
  }

  async #end(how: (queries: QueryInterface) => Promise<void>): Promise<void> {
    this.#isEnded = true;
    try {
      await this.#awaited(how(this.#on.getQueryInterface()), this.#connection);
    } catch (error) {
      await this.parts.forceCleanup(); // Which takes back what was not committed.
      throw error;
    }
    this.parts.cleanup();
  }
}

/**
 * Runs `work` in a transaction of its own. An error takes everything back.
 *
 * @param awaited waits for the answers to BEGIN, COMMIT and ROLLBACK.
 */
export async function inTransaction<T>(
  sequelize: Sequelize,
  work: (transaction: Transaction) => Promise<T>,
  awaited: Awaited = (answer) => answer,
): Promise<T> {
  const transaction = new QuietTransaction(sequelize, awaited);
  await transaction.parts.prepareEnvironment(false);
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
