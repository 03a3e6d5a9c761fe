import { QueryTypes, Sequelize, Transaction } from 'sequelize';
import { type Clock, StoreUnavailable } from '../../core/ports.js';
import type { Bind, Connection, Database } from './database.js';
import { type Dialect, mysql, postgres } from './dialect.js';
import { explained, isDeadlock } from './failures.js';

const DIALECTS = { postgres, mysql };

const CONNECT_MS = 5_000;
const ACQUIRE_MS = 5_000;
const IDLE_MS = 60_000;
const LOCK_S = 5;
// A report over a year takes long; whoever waits for less than that gives up by itself.
const STATEMENT_S = 30;
const MOST_TRIES = 5;
const LONGEST_PAUSE_MS = 50;

const POSTGRES_OPTIONS = {
  application_name: 'llmp',
  connectionTimeoutMillis: CONNECT_MS,
  statement_timeout: STATEMENT_S * 1000,
  query_timeout: (STATEMENT_S + LOCK_S) * 1000, // Ours, should the server stand still.
  lock_timeout: LOCK_S * 1000,
  idle_in_transaction_session_timeout: STATEMENT_S * 1000,
  keepAlive: true,
};
const MYSQL_OPTIONS = {
  connectTimeout: CONNECT_MS,
  charset: 'utf8mb4',
  // An UPDATE says how many rows it found, as everywhere else, and not how many then looked different.
  flags: ['FOUND_ROWS'],
};
// Nothing is cut to fit, or becomes another value, without an error.
const MYSQL_SESSION = `SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = ${LOCK_S}`;
// MariaDB has the one, MySQL the other.
const MYSQL_LIMITS = [
  `SET SESSION max_statement_time = ${STATEMENT_S}`,
  `SET SESSION max_execution_time = ${STATEMENT_S * 1000}`,
];

export interface ServerDatabaseOptions {
  dialect: keyof typeof DIALECTS;
  /** With the user's name and password, if there are any. */
  url: string;
  /** The most connections. */
  poolSize: number;
  clock: Pick<Clock, 'after'>;
}

/** PostgreSQL, MySQL or MariaDB: a server that other instances use as well, over a pool of connections. */
export class ServerDatabase implements Database {
  readonly dialect: Dialect;
  readonly sequelize: Sequelize;
  readonly #clock: Pick<Clock, 'after'>;
  statements = 0;

  constructor({ dialect, url, poolSize, clock }: ServerDatabaseOptions) {
    this.dialect = DIALECTS[dialect];
    this.#clock = clock;
    this.sequelize = new Sequelize(url, {
      dialect,
      pool: { max: poolSize, min: 0, acquire: ACQUIRE_MS, idle: IDLE_MS },
      // What was read before a lock was waited for must not be read again afterwards.
      isolationLevel: Transaction.ISOLATION_LEVELS.READ_COMMITTED,
      timezone: '+00:00',
      dialectOptions: dialect === 'postgres' ? POSTGRES_OPTIONS : MYSQL_OPTIONS,
      // Only counted: a statement's text would bring bind values into a log.
      logging: () => {
        this.statements += 1;
      },
    });
    if (dialect === 'mysql') this.sequelize.addHook('afterConnect', setUpMysql);
  }

  select<Row extends object>(sql: string, bind: Bind = {}): Promise<Row[]> {
    return explained(this.sequelize.query<Row>(sql, { bind, type: QueryTypes.SELECT }));
  }

  transact<T>(work: (tx: Connection) => Promise<T>): Promise<T> {
    return explained(this.#transact(work));
  }

  /** Of transactions that wait for each other the database ends one. That one is done again, as a whole. */
  async #transact<T>(work: (tx: Connection) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.sequelize.transaction((transaction) => work(this.#within(transaction)));
      } catch (error) {
        if (tries === MOST_TRIES || !isDeadlock(error)) throw error;
        await new Promise<void>((resolve) => this.#clock.after(Math.random() * LONGEST_PAUSE_MS, resolve));
      }
    }
  }

  #within(transaction: Transaction): Connection {
    const { sequelize, dialect } = this;
    return {
      dialect,
      select: <Row extends object>(sql: string, bind: Bind = {}) =>
        sequelize.query<Row>(sql, { bind, type: QueryTypes.SELECT, transaction }),
      async execute(sql, bind = {}) {
        // Of this type, for the answers to others have as many shapes as there are drivers and statements.
        const options = { bind, type: QueryTypes.BULKUPDATE, transaction };
        const changed: unknown = await sequelize.query(sql, options);
        if (!Number.isInteger(changed)) throw new StoreUnavailable('the database did not say how many rows it changed');
        return changed as number;
      },
    };
  }

  async close(): Promise<void> {
    await this.sequelize.close();
  }
}

/** As much of the driver's connection as is needed before anybody else may use it. */
interface MysqlConnection {
  query(sql: string, done: (error: Error | null) => void): void;
}

async function setUpMysql(connection: unknown): Promise<void> {
  const run = (sql: string) =>
    new Promise<void>((resolve, reject) => {
      (connection as MysqlConnection).query(sql, (error) => {
        if (error) reject(error);
        else resolve();
      });
    });
  await run(MYSQL_SESSION);
  for (const sql of MYSQL_LIMITS) await run(sql).catch(() => undefined);
}
