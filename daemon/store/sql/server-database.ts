import { QueryTypes, type Sequelize, type Transaction } from 'sequelize';
import { serverAt } from '../../../config/database-url.js';
import { type Clock, StoreRefused, StoreUnavailable } from '../../core/ports.js';
import { SingleRun } from '../../core/single-run.js';
import { isDoneWithin } from '../../core/timing.js';
import type { Bind, SqlTransaction, Database, StatementTimeout } from './database.js';
import { type Dialect, mysql, postgres } from './dialect.js';
import { withStoreErrors, isDeadlock } from './failures.js';
import { checkedNumbers } from './numbers.js';
import { destroyConnection, createPool } from './server-connections.js';
import { inTransaction } from './server-transaction.js';
import { Sockets } from './server-connections.js';
import { DATABASE_TIMEOUTS, type DatabaseTimeouts } from './database.js';

const DIALECTS = { postgres, mysql };

const MAX_ATTEMPTS = 5;
const MAX_RETRY_PAUSE_MS = 50;

export interface ServerDatabaseOptions {
  dialect: keyof typeof DIALECTS;
  /** Same as DATABASE_URL. */
  url: string;
  /** Maximum number of connections, in addition to the priority connection. */
  poolSize: number;
  clock: Pick<Clock, 'after'>;
  /** CA certificates in PEM, in place of those of the system. */
  certificates?: string | null;
  /** Default: `DATABASE_TIMEOUTS`. */
  timeouts?: Readonly<DatabaseTimeouts>;
  /** Called for each statement that the server will refuse until an operator corrects something. */
  onRefused?: ((refused: StoreRefused) => void) | undefined;
}

/** A pending statement; without a connection, a pending transaction or a wait for a connection. */
interface PendingOperation {
  connection: unknown;
  waitedMs: number;
  timeoutMs: number;
}

/** The part of Sequelize's connection manager that is needed to know which connection runs a statement. */
interface ConnectionPool {
  getConnection(options: object): Promise<unknown>;
  releaseConnection(connection: unknown): void;
}

/**
 * PostgreSQL, MySQL or MariaDB: a server that is shared with other instances, used through a connection pool.
 *
 * A server that hangs, or a network that drops all packets, leaves connections open without any response. So while statements are
 * pending, a short query runs every second on a separate connection. If it gets no response within two seconds, all connections are
 * closed, all pending statements fail, and the next statements open new connections.
 *
 * A single connection can be dead as well, for example because a NAT gateway has forgotten it. So each statement, including BEGIN
 * and COMMIT, has a timeout, after which only its own connection is closed.
 */
export class ServerDatabase implements Database {
  readonly dialect: Dialect;
  readonly #sequelize: Sequelize;
  /** Pool of one connection, which no long report can block. */
  readonly #priorityPool: Sequelize;
  readonly #sockets = new Sockets();
  readonly #clock: Pick<Clock, 'after'>;
  readonly #timeouts: Readonly<DatabaseTimeouts>;
  readonly #onRefused: (refused: StoreRefused) => void;
  readonly #pending = new Set<PendingOperation>();
  #isCheckScheduled = false;
  readonly #probing = new SingleRun<unknown>();
  statements = 0;

  constructor({
    dialect,
    url,
    poolSize,
    clock,
    certificates = null,
    timeouts = DATABASE_TIMEOUTS,
    onRefused = () => undefined,
  }: ServerDatabaseOptions) {
    const server = serverAt(url);
    if (server?.driver !== dialect) throw new RangeError(`not a URL for ${dialect}`);
    this.dialect = DIALECTS[dialect];
    this.#clock = clock;
    this.#timeouts = timeouts;
    this.#onRefused = onRefused;
    const onStatement = () => {
      this.statements += 1;
    };
    const { connectMs, priorityConnectMs } = this.#timeouts;
    const connecting = { server, certificates, sockets: this.#sockets, clock, onStatement, limits: this.#timeouts };
    this.#sequelize = createPool(connecting, poolSize, connectMs);
    this.#priorityPool = createPool(connecting, 1, priorityConnectMs);
  }

  select<Row extends object>(sql: string, bind: Bind = {}, timeout: StatementTimeout = 'long'): Promise<Row[]> {
    return this.#tracked(this.#withStoreErrors(this.#select<Row>(sql, bind, timeout)));
  }

  async #select<Row extends object>(sql: string, bind: Bind, timeout: StatementTimeout): Promise<Row[]> {
    const lender = this.#sequelize.connectionManager as unknown as ConnectionPool;
    const connection = await lender.getConnection({ type: 'SELECT' });
    try {
      // Sequelize needs only the connection of a transaction here.
      const lent = { connection } as unknown as Transaction;
      return await this.#tracked(selectRows<Row>(this.#sequelize, sql, bind, lent), connection, timeout);
    } finally {
      lender.releaseConnection(connection);
    }
  }

  transact<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T> {
    return this.#tracked(this.#withStoreErrors(this.#transact(work)));
  }

  loadSequelize(): Promise<Sequelize> {
    return Promise.resolve(this.#sequelize);
  }

  inTransaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return inTransaction(this.#sequelize, work);
  }

  prioritySelect<Row extends object>(sql: string, bind: Bind = {}): Promise<Row[]> {
    return this.#withinProbeTimeout(this.#withStoreErrors(selectRows<Row>(this.#priorityPool, sql, bind)));
  }

  async #withStoreErrors<T>(query: Promise<T>): Promise<T> {
    try {
      return await withStoreErrors(query);
    } catch (error) {
      if (error instanceof StoreRefused) this.#onRefused(error);
      throw error;
    }
  }

  /** Runs a transaction, and repeats it as a whole if the database ended it because of a deadlock. */
  async #transact<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        const within = (transaction: Transaction) => work(this.#sqlTransaction(transaction));
        return await inTransaction(this.#sequelize, within, (statement, connection) =>
          this.#tracked(statement, connection),
        );
      } catch (error) {
        if (tries === MAX_ATTEMPTS || !isDeadlock(error)) throw error;
        await new Promise<void>((resolve) => this.#clock.after(Math.random() * MAX_RETRY_PAUSE_MS, resolve));
      }
    }
  }

  #sqlTransaction(transaction: Transaction): SqlTransaction {
    const { dialect } = this;
    const sequelize = this.#sequelize;
    const { connection } = transaction as unknown as { connection: unknown };
    return {
      dialect,
      select: <Row extends object>(sql: string, bind: Bind = {}, timeout: StatementTimeout = 'usual') =>
        this.#tracked(selectRows<Row>(sequelize, sql, bind, transaction), connection, timeout),
      execute: (sql, bind = {}, timeout = 'usual') =>
        this.#tracked(executeChange(sequelize, sql, bind, transaction), connection, timeout),
    };
  }

  /** Tracks a pending operation. @param connection closed when the timeout is exceeded; null if that is tracked elsewhere. */
  async #tracked<T>(
    operation: Promise<T>,
    connection: unknown = null,
    timeout: StatementTimeout = 'usual',
  ): Promise<T> {
    const waiting = { connection, waitedMs: 0, timeoutMs: this.#timeouts.statementMs[timeout] };
    this.#pending.add(waiting);
    this.#scheduleCheck();
    try {
      return await operation;
    } finally {
      this.#pending.delete(waiting);
    }
  }

  #scheduleCheck(): void {
    if (this.#isCheckScheduled) return;
    this.#isCheckScheduled = true;
    this.#clock.after(this.#timeouts.checkEveryMs, () => {
      this.#isCheckScheduled = false;
      if (this.#pending.size > 0) this.#checkPending();
    });
  }

  #checkPending(): void {
    for (const each of this.#pending) {
      each.waitedMs += this.#timeouts.checkEveryMs;
      if (each.connection !== null && each.waitedMs > each.timeoutMs) {
        destroyConnection(each.connection, `the database did not respond within ${each.timeoutMs / 1000} s`);
      }
    }
    const asked = this.#probing.run(() => this.prioritySelect('SELECT 1'));
    asked.catch(() => undefined); // The pending statements fail on their own.
    this.#scheduleCheck();
  }

  /**
   * Waits for a query on the priority connection. @throws {StoreUnavailable} when the response is late; then all connections are
   * closed.
   */
  async #withinProbeTimeout<T>(query: Promise<T>): Promise<T> {
    const { probeMs } = this.#timeouts;
    if (await isDoneWithin(this.#clock, probeMs, query)) return query;
    const why = `the database did not respond within ${probeMs / 1000} s`;
    this.#sockets.destroyAll(why);
    throw new StoreUnavailable(why);
  }

  async close(): Promise<void> {
    await Promise.all([this.#priorityPool.close(), this.#sequelize.close()]);
  }
}

async function selectRows<Row extends object>(on: Sequelize, sql: string, bind: Bind, transaction?: Transaction) {
  const rows = await on.query<Row>(sql, { bind, type: QueryTypes.SELECT, ...(transaction && { transaction }) });
  return on.getDialect() === 'mysql' ? checkedNumbers(rows) : rows;
}

/** @throws {StoreUnavailable} if the number of changed rows is unknown. */
async function executeChange(on: Sequelize, sql: string, bind: Bind, transaction?: Transaction): Promise<number> {
  // Results of other query types differ between drivers and statements.
  const options = { bind, type: QueryTypes.BULKUPDATE, ...(transaction && { transaction }) };
  const changed: unknown = await on.query(sql, options);
  if (!Number.isInteger(changed)) throw new StoreUnavailable('the database did not report how many rows it changed');
  return changed as number;
}
