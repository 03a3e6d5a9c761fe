import { BaseError, QueryTypes, Sequelize, Transaction, UniqueConstraintError } from 'sequelize';
import { StoreConflict, StoreUnavailable } from '../../core/ports.js';
import { closeBrokenConnections, preparedSqlite3 } from './sqlite.js';

export type Bind = Record<string, string | number | boolean | null>;

/** What can be asked: the database at large, or one transaction. Values go in as binds (`$name`), never as text. */
export interface Reader {
  select<Row extends object>(sql: string, bind?: Bind): Promise<Row[]>;
}

/** One transaction. Nothing is written outside of one. */
export interface Connection extends Reader {
  /** @returns how many rows were inserted, updated or deleted. */
  execute(sql: string, bind?: Bind): Promise<number>;
}

/**
 * The SQL database. On SQLite there is one writer at a time: parallel Sequelize transactions block each other in
 * libuv's few threads until everything stands still (5 of 60 succeed, after 73 s), so they queue here.
 */
export class Database implements Reader {
  readonly sequelize: Sequelize;
  /** Statements sent so far. */
  statements = 0;
  #lastWriter: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    this.sequelize = new Sequelize({
      dialect: 'sqlite',
      storage: path,
      dialectModule: preparedSqlite3,
      // Only counted: a statement's text would bring bind values into a log.
      logging: () => {
        this.statements += 1;
      },
    });
    closeBrokenConnections(this.sequelize.connectionManager);
  }

  select<Row extends object>(sql: string, bind: Bind = {}): Promise<Row[]> {
    return guarded(selectOn<Row>(this.sequelize, sql, bind, null));
  }

  /** Runs `work` in a transaction of its own, after those that came before. An error takes everything back. */
  transact<T>(work: (tx: Connection) => Promise<T>): Promise<T> {
    const turn = this.#lastWriter.then(() => this.#transactNow(work));
    this.#lastWriter = turn.catch(() => undefined);
    return turn;
  }

  #transactNow<T>(work: (tx: Connection) => Promise<T>): Promise<T> {
    const { sequelize } = this;
    return guarded(
      sequelize.transaction({ type: Transaction.TYPES.IMMEDIATE }, (transaction) =>
        work({
          select: (sql, bind = {}) => selectOn(sequelize, sql, bind, transaction),
          execute: (sql, bind = {}) => executeOn(sequelize, sql, bind, transaction),
        }),
      ),
    );
  }

  async close(): Promise<void> {
    await this.#lastWriter;
    await this.sequelize.close();
  }
}

function selectOn<Row extends object>(
  sequelize: Sequelize,
  sql: string,
  bind: Bind,
  transaction: Transaction | null,
): Promise<Row[]> {
  return sequelize.query<Row>(sql, { bind, transaction, type: QueryTypes.SELECT });
}

async function executeOn(sequelize: Sequelize, sql: string, bind: Bind, transaction: Transaction): Promise<number> {
  // BULKUPDATE is the type whose answer is the bare number of rows touched. Should a dialect answer in
  // another shape, a cap would hang on a misread number: fail instead.
  const rows: unknown = await sequelize.query(sql, { bind, transaction, type: QueryTypes.BULKUPDATE });
  if (typeof rows !== 'number') throw new StoreUnavailable('the database did not say how many rows it changed');
  return rows;
}

/** Sequelize's errors carry the statement and its values, upstream keys among them. Only the driver's code and words get out. */
async function guarded<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof UniqueConstraintError && isOfColumns(error))
      throw new StoreConflict('a unique value is taken');
    if (error instanceof BaseError) throw new StoreUnavailable(describe(error));
    throw error;
  }
}

/** On SQLite Sequelize makes a UniqueConstraintError of every failed constraint, a trigger's veto too; only a unique one names columns. */
function isOfColumns({ fields }: UniqueConstraintError): boolean {
  return Object.keys(fields).length > 0;
}

function describe(error: BaseError): string {
  const { original, parent } = error as BaseError & { original?: Error; parent?: Error };
  return (original ?? parent ?? error).message;
}
