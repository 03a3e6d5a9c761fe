import { QueryTypes, type Sequelize, type Transaction } from 'sequelize';
import { serverAt } from '../../../config/database-url.js';
import { type Clock, StoreUnavailable } from '../../core/ports.js';
import { SingleRun } from '../../core/single-run.js';
import type { Bind, Connection, Database, Patience } from './database.js';
import { type Dialect, mysql, postgres } from './dialect.js';
import { explained, isDeadlock } from './failures.js';
import { giveUp, poolOf } from './server-connections.js';
import { inTransaction } from './server-transaction.js';
import { Sockets } from './sockets.js';
import { DATABASE_WAITS, type DatabaseWaits } from './waits.js';

const DIALECTS = { postgres, mysql };

const MOST_TRIES = 5;
const LONGEST_PAUSE_MS = 50;

export interface ServerDatabaseOptions {
  dialect: keyof typeof DIALECTS;
  /** As in DATABASE_URL. */
  url: string;
  /** The most connections, one for `ask` and `tell` left aside. */
  poolSize: number;
  clock: Pick<Clock, 'after'>;
  /** PEM, of those that are believed in place of the system's. */
  certificates?: string | null;
  /** In place of those that are shipped. */
  waits?: Readonly<DatabaseWaits>;
}

/** A statement that is waited for, or (without a connection) a connection, or all of a transaction. */
interface Waiting {
  connection: unknown;
  waitedMs: number;
  mostMs: number;
}

/** As much of Sequelize's connection manager as it takes to know which connection a statement goes over. */
interface Lender {
  getConnection(options: object): Promise<unknown>;
  releaseConnection(connection: unknown): void;
}

/**
 * PostgreSQL, MySQL or MariaDB: a server that other instances use as well, over a pool of connections.
 *
 * A server that stands still, or a network that swallows everything, leaves connections open and answers nothing. So while anybody
 * waits, a question is put every second that any living server answers at once, over a connection of its own; without an answer
 * in two seconds all connections are given up, whoever waits for one is told so, and the next statements make new ones.
 *
 * One connection of many may lead nowhere as well: something in between has forgotten it. So each statement, BEGIN and COMMIT
 * included, has its time, and then its connection alone is given up.
 */
export class ServerDatabase implements Database {
  readonly dialect: Dialect;
  readonly sequelize: Sequelize;
  /** A pool of one, which no long report can hold up. */
  readonly #aside: Sequelize;
  readonly #sockets = new Sockets();
  readonly #clock: Pick<Clock, 'after'>;
  readonly #waits: Readonly<DatabaseWaits>;
  readonly #waiting = new Set<Waiting>();
  #isLooking = false;
  readonly #asking = new SingleRun<unknown>();
  statements = 0;

  constructor({ dialect, url, poolSize, clock, certificates = null, waits = DATABASE_WAITS }: ServerDatabaseOptions) {
    const server = serverAt(url);
    if (server?.driver !== dialect) throw new RangeError(`no URL of ${dialect}`);
    this.dialect = DIALECTS[dialect];
    this.#clock = clock;
    this.#waits = waits;
    const onStatement = () => {
      this.statements += 1;
    };
    const { connectMs, connectAsideMs, pauseMs } = this.#waits;
    const connecting = { server, certificates, sockets: this.#sockets, clock, onStatement, pauseMs };
    this.sequelize = poolOf(connecting, poolSize, connectMs);
    this.#aside = poolOf(connecting, 1, connectAsideMs);
  }

  select<Row extends object>(sql: string, bind: Bind = {}, patience: Patience = 'long'): Promise<Row[]> {
    return this.#awaited(explained(this.#select<Row>(sql, bind, patience)));
  }

  async #select<Row extends object>(sql: string, bind: Bind, patience: Patience): Promise<Row[]> {
    const lender = this.sequelize.connectionManager as unknown as Lender;
    const connection = await lender.getConnection({ type: 'SELECT' });
    try {
      // All that Sequelize asks of a transaction here is the connection.
      const lent = { connection } as unknown as Transaction;
      return await this.#awaited(selected<Row>(this.sequelize, sql, bind, lent), connection, patience);
    } finally {
      lender.releaseConnection(connection);
    }
  }

  transact<T>(work: (tx: Connection) => Promise<T>): Promise<T> {
    return this.#awaited(explained(this.#transact(work)));
  }

  inTransaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return inTransaction(this.sequelize, work);
  }

  ask<Row extends object>(sql: string, bind: Bind = {}): Promise<Row[]> {
    return this.#atOnce(explained(selected<Row>(this.#aside, sql, bind)));
  }

  /** Of transactions that wait for each other the database ends one. That one is done again, as a whole. */
  async #transact<T>(work: (tx: Connection) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        const within = (transaction: Transaction) => work(this.#within(transaction));
        return await inTransaction(this.sequelize, within, (answer, connection) => this.#awaited(answer, connection));
      } catch (error) {
        if (tries === MOST_TRIES || !isDeadlock(error)) throw error;
        await new Promise<void>((resolve) => this.#clock.after(Math.random() * LONGEST_PAUSE_MS, resolve));
      }
    }
  }

  #within(transaction: Transaction): Connection {
    const { sequelize, dialect } = this;
    const { connection } = transaction as unknown as { connection: unknown };
    return {
      dialect,
      select: <Row extends object>(sql: string, bind: Bind = {}, patience: Patience = 'usual') =>
        this.#awaited(selected<Row>(sequelize, sql, bind, transaction), connection, patience),
      execute: (sql, bind = {}, patience = 'usual') =>
        this.#awaited(executed(sequelize, sql, bind, transaction), connection, patience),
    };
  }

  /** @param connection that is given up when the answer takes too long; null where something else sees to that. */
  async #awaited<T>(answer: Promise<T>, connection: unknown = null, patience: Patience = 'usual'): Promise<T> {
    const waiting = { connection, waitedMs: 0, mostMs: this.#waits.statementMs[patience] };
    this.#waiting.add(waiting);
    this.#lookSoon();
    try {
      return await answer;
    } finally {
      this.#waiting.delete(waiting);
    }
  }

  #lookSoon(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#clock.after(this.#waits.lookEveryMs, () => {
      this.#isLooking = false;
      if (this.#waiting.size > 0) this.#look();
    });
  }

  #look(): void {
    for (const each of this.#waiting) {
      each.waitedMs += this.#waits.lookEveryMs;
      if (each.connection !== null && each.waitedMs > each.mostMs) {
        giveUp(each.connection, `the database did not answer within ${each.mostMs / 1000} s`);
      }
    }
    const asked = this.#asking.run(() => this.ask('SELECT 1'));
    asked.catch(() => undefined); // Whoever waits is told.
    this.#lookSoon();
  }

  /** @throws {StoreUnavailable} and tells so everybody else who waits, when the answer is late. */
  async #atOnce<T>(answer: Promise<T>): Promise<T> {
    const { answerMs } = this.#waits;
    let isThere = false;
    let cancel: () => void = () => undefined;
    const late = new Promise<never>((_, reject) => {
      cancel = this.#clock.after(answerMs, () => {
        // Should it be this process that stood still, what came meanwhile is read first.
        setImmediate(() => {
          if (isThere) return;
          const why = `the database did not answer within ${answerMs / 1000} s`;
          this.#sockets.abandon(why);
          reject(new StoreUnavailable(why));
        });
      });
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      isThere = true;
      cancel();
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#aside.close(), this.sequelize.close()]);
  }
}

function selected<Row extends object>(on: Sequelize, sql: string, bind: Bind, transaction?: Transaction) {
  return on.query<Row>(sql, { bind, type: QueryTypes.SELECT, ...(transaction && { transaction }) });
}

/** @throws {StoreUnavailable} when it is not known how many rows were changed. */
async function executed(on: Sequelize, sql: string, bind: Bind, transaction?: Transaction): Promise<number> {
  // Of this type, for the answers to others have as many shapes as there are drivers and statements.
  const options = { bind, type: QueryTypes.BULKUPDATE, ...(transaction && { transaction }) };
  const changed: unknown = await on.query(sql, options);
  if (!Number.isInteger(changed)) throw new StoreUnavailable('the database did not say how many rows it changed');
  return changed as number;
}
