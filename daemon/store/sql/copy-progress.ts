/** The table of the other database that says how far a copy is. It exists only until the copy is complete. */
import { StoreConflict } from '../../core/ports.js';
import type { Database, SqlTransaction } from './database.js';

/** Another process has changed the progress. */
export class CopiedByAnother extends Error {
  override name = 'CopiedByAnother';

  constructor() {
    super('another process copies into the same database. Let it finish, or stop it and continue with --resume');
  }
}

export const PROGRESS_TABLE = 'copy_progress';
export const PROGRESS_COLUMNS = 'name VARCHAR(64) NOT NULL PRIMARY KEY, version BIGINT NOT NULL, state TEXT NOT NULL';

/** A value in the progress table. Two processes cannot both change it. */
export class ProgressEntry<T> {
  readonly #target: Database;
  readonly #name: string;
  #version: number;
  value: T;

  private constructor(target: Database, name: string, version: number, value: T) {
    this.#target = target;
    this.#name = name;
    this.#version = version;
    this.value = value;
  }

  /** Whether nothing was stored yet. */
  get isNew(): boolean {
    return this.#version === 0;
  }

  static async open<T>(target: Database, name: string, first: T): Promise<ProgressEntry<T>> {
    const [row] = await target.select<{ version: number; state: string }>(
      `SELECT version, state FROM ${PROGRESS_TABLE} WHERE name = $name`,
      { name },
    );
    return new ProgressEntry(target, name, row?.version ?? 0, row ? (JSON.parse(row.state) as T) : first);
  }

  set(value: T): Promise<void> {
    return this.change(() => Promise.resolve(value));
  }

  /** Does `work`, which returns the next value, in one transaction with the change. @throws {CopiedByAnother} */
  async change(work: (tx: SqlTransaction) => Promise<T>): Promise<void> {
    const bind = { name: this.#name, version: this.#version };
    const lock = this.isNew
      ? `INSERT INTO ${PROGRESS_TABLE} (name, version, state) VALUES ($name, $version + 1, '')`
      : `UPDATE ${PROGRESS_TABLE} SET version = version + 1 WHERE name = $name AND version = $version`;
    try {
      this.value = await this.#target.transact(async (tx) => {
        if ((await tx.execute(lock, bind)) !== 1) throw new CopiedByAnother();
        const value = await work(tx);
        const state = JSON.stringify(value);
        await tx.execute(`UPDATE ${PROGRESS_TABLE} SET state = $state WHERE name = $name`, { name: bind.name, state });
        return value;
      });
    } catch (error) {
      throw this.isNew && error instanceof StoreConflict ? new CopiedByAnother() : error;
    }
    this.#version += 1;
  }
}
