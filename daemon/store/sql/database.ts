import { BaseError, QueryTypes, Sequelize } from 'sequelize';
import { StoreConflict, StoreUnavailable } from '../../core/ports.js';
import { closeBrokenConnections, preparedSqlite3, SqliteWriter } from './sqlite.js';

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
 * The SQL database. On SQLite there is one writer at a time: parallel transactions block each other in libuv's few
 * threads until everything stands still (5 of 60 succeed, after 73 s), so they queue here.
 */
export class Database implements Reader {
  readonly sequelize: Sequelize;
  readonly writer: SqliteWriter;
  #read = 0;
  #lastWriter: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    this.sequelize = new Sequelize({
      dialect: 'sqlite',
      storage: path,
      dialectModule: preparedSqlite3,
      // Only counted: a statement's text would bring bind values into a log.
      logging: () => {
        this.#read += 1;
      },
    });
    closeBrokenConnections(this.sequelize.connectionManager);
    this.writer = new SqliteWriter(path);
  }

  /** Statements sent so far. */
  get statements(): number {
    return this.#read + this.writer.statements;
  }

  select<Row extends object>(sql: string, bind: Bind = {}): Promise<Row[]> {
    return guarded(this.sequelize.query<Row>(sql, { bind, type: QueryTypes.SELECT }));
  }

  /** Runs `work` in a transaction of its own, after those that came before. An error takes everything back. */
  transact<T>(work: (tx: Connection) => Promise<T>): Promise<T> {
    const { writer } = this;
    const turn = this.#lastWriter.then(() =>
      guarded(
        writer.transact(() =>
          work({
            select: (sql, bind) => writer.all(sql, bind),
            execute: (sql, bind) => writer.run(sql, bind),
          }),
        ),
      ),
    );
    this.#lastWriter = turn.catch(() => undefined);
    return turn;
  }

  async close(): Promise<void> {
    await this.#lastWriter;
    await this.writer.close();
    await this.sequelize.close();
  }
}

/** Sequelize's errors carry the statement and its values, upstream keys among them. Only the driver's code and words get out. */
async function guarded<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    const cause = error instanceof BaseError ? driversOwn(error) : error;
    if (!(cause instanceof Error) || !isOfDatabase(error, cause)) throw error;
    // A trigger's veto is a failed constraint too; only one of uniqueness is a conflict.
    if (cause.message.includes('UNIQUE constraint failed')) throw new StoreConflict('a unique value is taken');
    throw new StoreUnavailable(cause.message);
  }
}

function driversOwn(error: BaseError): Error {
  const { original, parent } = error as BaseError & { original?: Error; parent?: Error };
  return original ?? parent ?? error;
}

const isOfDatabase = (error: unknown, cause: Error) =>
  error instanceof BaseError || String((cause as { code?: unknown }).code).startsWith('SQLITE_');
