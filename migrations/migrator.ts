/**
 * Migrations of the database schema: lists them, records which ones were applied, and applies the pending ones.
 *
 * Each migration and its record are committed in one transaction, so that a crash leaves it applied or not started. MySQL commits
 * every table change on its own; there a migration may be left half done, and is then run again.
 *
 * Only what applies migrations uses Sequelize.
 */
import type { Sequelize, Transaction } from 'sequelize';
import { MigrationsLocked, SchemaTooNew } from './failures.js';
import type { Migration } from './migration.js';

/** What a migration does is loaded, with Sequelize, when it is applied. */
export const MIGRATIONS: readonly Migration[] = [
  {
    name: '0001-first-schema',
    minBuild: '0.1.0',
    up: async (schema) => (await import('./0001-first-schema.js')).up(schema),
  },
];
const TABLE = 'schema_migrations';

/**
 * Recorded before the other migrations while a copy into the database is not complete, so that no release uses it. Only a migrator that
 * has it among its migrations goes on.
 */
export const UNFINISHED_COPY: Migration = {
  name: 'unfinished-copy',
  minBuild: '9999.0.0',
  up: () => Promise.resolve(),
};

export interface MigrationStatus {
  current: string | null;
  pending: string[];
  applied: { name: string; appliedAtMs: number }[];
}

interface AppliedRow {
  name: string;
  min_build: string;
  applied_at: number;
}

/** A database whose schema is read. */
export interface Readable {
  readonly dialect: { tableNamed: (bind: string) => string };
  select<Row extends object>(sql: string, bind?: Record<string, string>): Promise<Row[]>;
}

/** A database that can be migrated. */
export interface Migratable extends Readable {
  loadSequelize(): Promise<Sequelize>;
  /** Runs `work` in a transaction. On SQLite no other connection writes meanwhile. An error rolls it back. */
  inTransaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
}

/** Which migrations were applied to a database. */
export class SchemaHistory {
  readonly #database: Readable;
  protected readonly build: string;
  protected readonly migrations: readonly Migration[];

  /**
   * @param build the version of this build, for example 1.4.0.
   * @param migrations in the order of application; tests add their own.
   */
  constructor(database: Readable, build: string, migrations: readonly Migration[] = MIGRATIONS) {
    this.#database = database;
    this.build = build;
    this.migrations = migrations;
  }

  async status(): Promise<MigrationStatus> {
    const rows = await this.#applied();
    const names = new Set(rows.map((row) => row.name));
    return {
      current: rows.at(-1)?.name ?? null,
      pending: this.migrations.filter(({ name }) => !names.has(name)).map(({ name }) => name),
      applied: rows.map((row) => ({ name: row.name, appliedAtMs: row.applied_at })),
    };
  }

  /** @throws {SchemaTooNew} when the schema requires a newer build. */
  async refuseNewerSchema(): Promise<void> {
    const applied = await this.#applied();
    this.refuseUnfinishedCopy(applied.map(({ name }) => name));
    for (const row of applied) {
      if (row.name !== UNFINISHED_COPY.name && compareVersions(row.min_build, this.build) > 0) {
        throw new SchemaTooNew(`the schema (${row.name}) needs llmp ${row.min_build} or newer; this is ${this.build}`);
      }
    }
  }

  protected refuseUnfinishedCopy(applied: readonly string[]): void {
    if (applied.includes(UNFINISHED_COPY.name) && !this.migrations.includes(UNFINISHED_COPY))
      throw new SchemaTooNew('a copy into this database is not complete. Complete it with: llmp migrate copy');
  }

  /** Applied migrations that this build does not know. Unless `refuseNewerSchema` throws, it can use the schema all the same. */
  async newer(): Promise<string[]> {
    const known = new Set(this.migrations.map(({ name }) => name));
    return (await this.#applied()).map(({ name }) => name).filter((name) => !known.has(name));
  }

  async #applied(): Promise<AppliedRow[]> {
    const { dialect } = this.#database;
    const tables = await this.#database.select(dialect.tableNamed('$table'), { table: TABLE });
    if (tables.length === 0) return [];
    return this.#database.select<AppliedRow>(`SELECT name, min_build, applied_at FROM ${TABLE} ORDER BY name`);
  }
}

export class Migrator extends SchemaHistory {
  readonly #database: Migratable;
  readonly #now: () => number;
  #running: Promise<unknown> = Promise.resolve();

  /** @param now ms since the epoch. */
  constructor(
    database: Migratable,
    build: string,
    now: () => number = Date.now,
    migrations: readonly Migration[] = MIGRATIONS,
  ) {
    super(database, build, migrations);
    this.#database = database;
    this.#now = now;
  }

  /** Applies the pending migrations. Concurrent calls wait for each other and then find nothing to do. */
  up(): Promise<MigrationStatus> {
    const turn = this.#running.then(() => this.#up());
    this.#running = turn.catch(() => undefined);
    return turn;
  }

  async #up(): Promise<MigrationStatus> {
    await this.refuseNewerSchema();
    const status = await this.status();
    return status.pending.length === 0 ? status : this.#apply(status.pending);
  }

  /**
   * Applies the pending migrations in order. @throws {Error} with the name of the failed migration; its `cause` is the original
   * error.
   */
  async #apply(pending: readonly string[]): Promise<MigrationStatus> {
    for (const migration of this.migrations.filter(({ name }) => pending.includes(name))) {
      await this.#run(migration).catch((error: unknown) => {
        if (error instanceof MigrationsLocked || error instanceof SchemaTooNew) throw error;
        const why = error instanceof Error ? error.message : String(error);
        throw new Error(`migration ${migration.name} failed: ${why}`, { cause: error });
      });
    }
    return this.status();
  }

  async #run(migration: Migration): Promise<void> {
    const [{ whileAlone }, { Schema }] = await Promise.all([import('./lock.js'), import('./schema.js')]);
    const sequelize = await this.#database.loadSequelize();
    await this.#database.inTransaction((transaction) =>
      whileAlone(sequelize, transaction, async () => {
        await sequelize.query(
          `CREATE TABLE IF NOT EXISTS ${TABLE} (name VARCHAR(100) NOT NULL PRIMARY KEY, min_build VARCHAR(20) NOT NULL, applied_at BIGINT NOT NULL)`,
          { transaction },
        );
        // Another process may have applied it, or begun a copy, while we waited for the lock.
        const { name, minBuild } = migration;
        const [rows] = await sequelize.query(`SELECT name FROM ${TABLE}`, { transaction });
        const applied = (rows as { name: string }[]).map((row) => row.name);
        this.refuseUnfinishedCopy(applied);
        if (applied.includes(name)) return;
        await migration.up(new Schema(sequelize.getQueryInterface(), transaction));
        await sequelize.query(`INSERT INTO ${TABLE} (name, min_build, applied_at) VALUES ($name, $build, $at)`, {
          bind: { name, build: minBuild, at: this.#now() },
          transaction,
        });
      }),
    );
  }
}

function compareVersions(a: string, b: string): number {
  const [as, bs] = [a, b].map((version) => version.split(/[.-]/).map((part) => Number(part) || 0));
  for (let i = 0; i < 3; i++) {
    const difference = (as?.[i] ?? 0) - (bs?.[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
