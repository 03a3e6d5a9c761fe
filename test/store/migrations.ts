/** The schema after a migration was killed at any point, with a second migration that changes what the first one created. */
import { expect } from 'chai';
import { join } from 'node:path';
import { DataTypes } from 'sequelize';
import { realClock } from '../../daemon/process/clock.js';
import type { Database } from '../../daemon/store/sql/database.js';
import { ServerDatabase } from '../../daemon/store/sql/server-database.js';
import { SqliteDatabase } from '../../daemon/store/sql/sqlite-database.js';
import type { Migration } from '../../migrations/migration.js';
import { MIGRATIONS, Migrator } from '../../migrations/migrator.js';
import { temporaryFolder } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';

/** A complete schema: its tables, columns and indexes. */
async function schemaOf(database: Database): Promise<unknown> {
  const queries = (await database.loadSequelize()).getQueryInterface();
  const tables = (await queries.showAllTables()).filter((name) => !name.startsWith('audit_words')).sort();
  const described = await Promise.all(
    tables.map(async (table) => {
      const indexes = (await queries.showIndex(table)) as { name: string; unique: boolean; fields: unknown[] }[];
      const shown = indexes.map(({ name, unique, fields }) => ({ name, unique, fields }));
      shown.sort((a, b) => (a.name < b.name ? -1 : 1));
      return [table, { columns: await queries.describeTable(table), indexes: shown }];
    }),
  );
  return Object.fromEntries(described);
}

const second: Migration = {
  name: '0002-made-up',
  minBuild: '0.1.0',
  async up(schema) {
    await schema.addColumn('projects', 'made_up', { type: DataTypes.BIGINT, allowNull: false, defaultValue: 7 });
    await schema.addIndex('projects', ['made_up', 'id'], 'projects_made_up');
    await schema.createTableAs('made_up', `name ${schema.text(64)} PRIMARY KEY, amount BIGINT NOT NULL`);
  },
};
const both = [...MIGRATIONS, second];
const NAMES = both.map(({ name }) => name);

const migratorOf = (database: Database, migrations: readonly Migration[] = both) =>
  new Migrator(database, '0.1.0', undefined, migrations);
const up = (database: Database) => migratorOf(database).up();

/** Makes the statement with this number, and all later ones, fail as if the process were gone. @returns the number of statements. */
async function dieAt(statement: number, database: Database): Promise<{ readonly statements: number }> {
  const sequelize = await database.loadSequelize();
  const query = sequelize.query.bind(sequelize) as (...args: unknown[]) => Promise<unknown>;
  const counted = { statements: 0 };
  sequelize.query = ((...args: unknown[]) => {
    // Closing the connection would do the same.
    if (args[0] === 'ROLLBACK;') return query(...args);
    counted.statements += 1;
    return counted.statements < statement ? query(...args) : Promise.reject(new Error('killed'));
  }) as typeof sequelize.query;
  return counted;
}

function survivesKills(every: number, empty: () => Promise<() => Database>): void {
  const which = every === 1 ? 'any statement' : `one statement in ${every}`;
  it(`J12 a process killed at ${which} of the migrations leaves a schema that the next one completes`, async function () {
    this.timeout(300_000);
    const openClean = await empty();
    const clean = openClean();
    const counted = await dieAt(Infinity, clean);
    expect((await up(clean)).pending).to.deep.equal([]);
    const expected = await schemaOf(clean);
    await clean.close();
    expect(counted.statements).to.be.above(30);

    for (let statement = 1; statement <= counted.statements; statement += every) {
      const open = await empty();
      const killed = open();
      await dieAt(statement, killed);
      const failure = await up(killed).catch((error: unknown) => error);
      await killed.close().catch(() => undefined);
      const next = open();
      try {
        expect(
          (await up(next)).applied.map(({ name }) => name),
          `after ${statement}`,
        ).to.deep.equal(NAMES);
        expect(await schemaOf(next), `after ${statement}`).to.deep.equal(expected);
      } finally {
        await next.close();
      }
      // The last statements only read the result.
      if (!(failure instanceof Error)) break;
    }
  });
}

function upgrades(empty: () => Promise<() => Database>): void {
  it('a second migration changes a database in use, and keeps what is in it', async () => {
    const database = (await empty())();
    await migratorOf(database, MIGRATIONS).up();
    await database.transact((tx) =>
      tx.execute(
        `INSERT INTO projects (id, name, is_active, api_key, api_key_id, api_key_hint, upstream_auth, missing_usage, created_at, updated_at)
         VALUES ('p', 'web', $yes, '', '', '', 'bearer', 'off', 1, 1)`,
        { yes: true },
      ),
    );
    const before = await migratorOf(database).status();
    expect(before).to.deep.include({ current: MIGRATIONS.at(-1)?.name, pending: [second.name] });
    expect((await up(database)).pending).to.deep.equal([]);
    const rows = await database.select<{ name: string; made_up: number }>('SELECT name, made_up FROM projects');
    expect(rows.map(({ name, made_up }) => [name, made_up])).to.deep.equal([['web', 7]]);
    // The build before it can use the schema, because of `minBuild`.
    const earlier = migratorOf(database, MIGRATIONS);
    await earlier.refuseNewerSchema();
    expect(await earlier.newer()).to.deep.equal([second.name]);
    await database.close();
  });
}

/** @param every a process is killed at one of this many statements. */
export function testMigrations(every: number): void {
  describe('migrations of SQLite', () => {
    const empty = () => {
      const path = join(temporaryFolder(), 'llmp.db');
      return Promise.resolve(() => new SqliteDatabase(path));
    };
    survivesKills(every, empty);
    upgrades(empty);
  });

  for (const [kind, name] of Object.entries({ postgres: 'PostgreSQL', mysql: 'MariaDB' }) as [ServerKind, string][]) {
    describe(`migrations of ${name}${WITHOUT[kind]}`, function () {
      this.timeout(60_000);
      let server: DatabaseServer;

      before(async function () {
        if (WITHOUT[kind]) this.skip();
        server = await DatabaseServer.shared(kind);
      });

      const empty = async (poolSize = 2) => {
        const url = await server.newDatabase();
        return () => new ServerDatabase({ dialect: kind, url, poolSize, clock: realClock });
      };
      survivesKills(every, () => empty());
      upgrades(() => empty());

      it('J13 F18 four concurrent processes apply each migration once, also with a pool of one connection', async () => {
        const open = await empty(1);
        const databases = Array.from({ length: 4 }, open);
        const all = await Promise.all(databases.map(up));
        for (const { applied } of all) expect(applied.map(({ name }) => name)).to.deep.equal(NAMES);
        await Promise.all(databases.map((database) => database.close()));
      });
    });
  }
}
