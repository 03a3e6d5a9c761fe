/** What the SQL stores do when a server that instances share restarts, hangs, refuses, or has unusual settings. */
import { randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { realClock } from '../../daemon/process/clock.js';
import { StoreUnavailable } from '../../daemon/core/ports.js';
import { SecretBox } from '../../daemon/store/secrets.js';
import type { SqlTransaction, Database } from '../../daemon/store/sql/database.js';
import { SqlRecords } from '../../daemon/store/sql/records.js';
import { ServerDatabase } from '../../daemon/store/sql/server-database.js';
import { SqliteDatabase } from '../../daemon/store/sql/sqlite-database.js';
import { Migrator } from '../../migrations/migrator.js';
import { temporaryFolder } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { Relay } from '../support/redis.js';
import { aNewProject } from '../support/factories.js';

// Three seconds, and a margin for a busy machine.
const SOON_MS = 4_500;
const BACK_MS = 5_000;

type Rows = { n: number | string }[];

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

/** Fails unless all of these fail soon, as they must. */
async function failSoon(works: readonly Promise<unknown>[]): Promise<void> {
  const startMs = performance.now();
  for (const failure of await Promise.all(works.map(failureOf))) expect(failure).to.be.instanceOf(StoreUnavailable);
  expect(performance.now() - startMs).to.be.below(SOON_MS);
}

/** The affected rows of every kind of statement, in a separate table. */
async function countsRows(database: Database): Promise<void> {
  const counted = (sql: string, bind = {}) => database.transact((tx) => tx.execute(sql, bind));
  await (await database.loadSequelize()).query('CREATE TABLE counted (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)');
  expect(await counted('INSERT INTO counted (id, n) VALUES (1, $n), (2, $n), (3, $n)', { n: 1 })).to.equal(3);
  expect(await counted('UPDATE counted SET n = n + 1 WHERE id <= 2')).to.equal(2);
  // Matched rows count, not rows that really changed.
  expect(await counted('UPDATE counted SET n = 2 WHERE id = 1')).to.equal(1);
  expect(await counted('UPDATE counted SET n = 2 WHERE id = 9')).to.equal(0);
  expect(await counted('DELETE FROM counted WHERE n = 2')).to.equal(2);
}

describe('the stores on SQLite', () => {
  it('F05 every statement reports how many rows it matched', async () => {
    const database = new SqliteDatabase(`${temporaryFolder()}/llmp.db`);
    await countsRows(database);
    expect(await database.prioritySelect('SELECT n FROM counted')).to.deep.equal([{ n: 1 }]);
    await database.close();
  });
});

for (const [kind, name] of Object.entries({ postgres: 'PostgreSQL', mysql: 'MariaDB' }) as [ServerKind, string][]) {
  const isPostgres = kind === 'postgres';
  describe(`the stores on ${name}${WITHOUT[kind]}`, function () {
    this.timeout(60_000);
    let server: DatabaseServer;
    let url: string;
    let relay: Relay;
    const opened: Database[] = [];

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.start(kind);
      relay = await Relay.to(server.port);
    });
    beforeEach(async () => {
      url = await server.newDatabase();
    });
    afterEach(async () => {
      server.resume();
      relay.isSilent = false;
      await Promise.all(opened.splice(0).map((database) => database.close()));
    });
    after(async () => {
      if (WITHOUT[kind]) return;
      await relay.stop();
      await server.remove();
    });

    const open = (to = url, poolSize = 5) => {
      const database = new ServerDatabase({ dialect: kind, url: to, poolSize, clock: realClock });
      opened.push(database);
      return database;
    };
    const overRelay = () => {
      const through = new URL(url);
      through.port = String(relay.port);
      return through.href;
    };
    const pause = (s: number) => (isPostgres ? `SELECT 1 AS n FROM pg_sleep(${s})` : `SELECT SLEEP(${s}) + 1 AS n`);
    const answers = (database: Database) => database.select('SELECT 1 AS n');
    /** Makes several connections, which are idle afterwards. */
    const fill = (database: Database) => Promise.all([1, 2, 3].map(() => database.select(pause(0.05))));
    const isBackSoon = async (database: Database) => {
      const startMs = performance.now();
      await eventually('it responds', async () => (await failureOf(answers(database))) === null, 2 * BACK_MS);
      expect(performance.now() - startMs).to.be.below(BACK_MS);
      expect(await database.prioritySelect('SELECT 1 AS n')).to.have.length(1);
    };
    const rowsIn = async (database: Database) => {
      const [row] = await database.select<Rows[number]>('SELECT COUNT(*) AS n FROM kept');
      return Number(row?.n);
    };
    const makeTable = async (database: Database) =>
      (await database.loadSequelize()).query('CREATE TABLE kept (id INTEGER PRIMARY KEY)');
    const keep = (tx: SqlTransaction, id: number) => tx.execute('INSERT INTO kept (id) VALUES ($id)', { id });

    it('J08 idle connections survive a restart of the server, and nothing is left uncaught', async () => {
      const database = open();
      await fill(database);
      await database.prioritySelect('SELECT 1');
      await server.stop();
      expect(await failureOf(answers(database))).to.be.instanceOf(StoreUnavailable);
      await server.begin();
      await isBackSoon(database);
    });

    it('J08 waiting queries fail at once when the server is stopped', async () => {
      const database = open();
      const waiting = [database.select(pause(20)), database.transact((tx) => tx.select(pause(20)))];
      const failures = Promise.all(waiting.map(failureOf));
      await eventually('they wait', () => database.statements >= 3);
      await server.stop();
      for (const failure of await failures) expect(failure).to.be.instanceOf(StoreUnavailable);
      await server.begin();
      await isBackSoon(database);
    });

    const freezing = (isOn: boolean) => () => {
      if (isOn) server.freeze();
      else server.resume();
    };
    const silencing = (isOn: boolean) => () => {
      relay.isSilent = isOn;
    };
    for (const [what, freeze, thaw] of [
      ['a server that is frozen', freezing(true), freezing(false)],
      ['a network that drops everything', silencing(true), silencing(false)],
    ] as const) {
      it(`J07 with ${what}, waiting queries fail, and the stores recover with it`, async () => {
        const database = open(overRelay());
        await makeTable(database);
        await fill(database);
        let atHalf = (): void => undefined;
        const isHalf = new Promise<void>((resolve) => (atHalf = resolve));
        let goOn = (): void => undefined;
        const mayGoOn = new Promise<void>((resolve) => (goOn = resolve));
        const half = database.transact(async (tx) => {
          await keep(tx, 1);
          atHalf();
          await mayGoOn;
          await keep(tx, 2);
        });
        await isHalf;
        freeze();
        goOn();
        const more = Array.from({ length: 6 }, () => answers(database));
        await failSoon([half, ...more, database.transact((tx) => keep(tx, 3))]);
        await failSoon([database.prioritySelect('SELECT 1'), answers(database)]);
        thaw();
        await isBackSoon(database);
        expect(await rowsIn(database)).to.equal(0);
      });
    }

    it('J07 stores can be closed although the server does not respond', async () => {
      const database = new ServerDatabase({ dialect: kind, url, poolSize: 5, clock: realClock });
      await fill(database);
      await database.prioritySelect('SELECT 1');
      server.freeze();
      const startMs = performance.now();
      await database.close().catch(() => undefined);
      expect(performance.now() - startMs).to.be.below(2 * SOON_MS);
    });

    it('J07 a long statement does not make the server count as dead', async () => {
      const database = open();
      expect(await database.select(pause(4.5))).to.have.length(1);
    });

    it('J06 a transaction that loses its connection is rolled back, and none of its statements runs outside of it', async () => {
      const database = open();
      const other = open();
      await makeTable(database);
      const kill = async (tx: SqlTransaction) => {
        const [row] = await tx.select<Rows[number]>(
          isPostgres ? 'SELECT pg_backend_pid() AS n' : 'SELECT CONNECTION_ID() AS n',
        );
        const id = Number(row?.n);
        await (await other.loadSequelize()).query(isPostgres ? `SELECT pg_terminate_backend(${id})` : `KILL ${id}`);
      };
      const between = database.transact(async (tx) => {
        await keep(tx, 1);
        await kill(tx);
        await keep(tx, 2);
      });
      const atTheEnd = database.transact(async (tx) => {
        await keep(tx, 3);
        await kill(tx);
      });
      const unnoticed = database.transact(async (tx) => {
        await keep(tx, 4);
        await kill(tx);
        await keep(tx, 5).catch(() => undefined);
        await keep(tx, 6).catch(() => undefined);
      });
      const { warn } = console;
      const written: unknown[] = [];
      console.warn = (...words: unknown[]) => written.push(...words);
      await failSoon([between, atTheEnd, unnoticed]);
      console.warn = warn;
      expect(written).to.deep.equal([]);
      expect(await rowsIn(other)).to.equal(0);
      expect(await database.transact((tx) => keep(tx, 7))).to.equal(1);
    });

    it('J09 a query that gets no connection fails after two seconds, and lookups continue nevertheless', async () => {
      const database = open(url, 1);
      let release = (): void => undefined;
      const held = new Promise<void>((resolve) => (release = resolve));
      const holding = database.transact(async (tx) => {
        await tx.select('SELECT 1');
        await held;
      });
      await eventually('the connection is taken', () => database.statements >= 2);
      const waiting = failSoon([answers(database), database.transact((tx) => tx.select('SELECT 1'))]);
      expect(await database.prioritySelect('SELECT 1 AS n')).to.have.length(1);
      await waiting;
      release();
      await holding;
      expect(await answers(database)).to.have.length(1);
    });

    it('J09 transactions that wait for connections which they hold themselves do not deadlock', async () => {
      const database = open(url, 2);
      const nested = () =>
        database.transact(async (tx) => {
          await tx.select('SELECT 1');
          await database.transact((inner) => inner.select('SELECT 1'));
        });
      const startMs = performance.now();
      await Promise.all([nested(), nested(), nested(), nested()].map(failureOf));
      expect(performance.now() - startMs).to.be.below(2 * SOON_MS);
      expect(await answers(database)).to.have.length(1);
    });

    it('J10 a read-only server: writes fail with a clear error', async () => {
      const admin = open();
      await makeTable(admin);
      let reader = url;
      if (isPostgres) {
        const name = new URL(url).pathname.slice(1);
        await (await admin.loadSequelize()).query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
      } else {
        // For root the server is not read-only.
        await (await admin.loadSequelize()).query("CREATE USER IF NOT EXISTS 'plain'@'%'");
        await (await admin.loadSequelize()).query("GRANT ALL ON *.* TO 'plain'@'%'");
        await (await admin.loadSequelize()).query("REVOKE SUPER, READ_ONLY ADMIN ON *.* FROM 'plain'@'%'");
        await (await admin.loadSequelize()).query('SET GLOBAL read_only = 1');
        reader = url.replace('root@', 'plain@');
      }
      try {
        const database = open(reader);
        const failure = await failureOf(database.transact((tx) => keep(tx, 1)));
        expect(failure).to.be.instanceOf(StoreUnavailable);
        expect((failure as Error).message).to.match(/read-only/);
        expect(await rowsIn(database)).to.equal(0);
      } finally {
        if (!isPostgres) await (await admin.loadSequelize()).query('SET GLOBAL read_only = 0');
      }
    });

    it('J11 the server ends a statement that takes too long, and the stores continue', async () => {
      const database = open();
      const [row] = await database.select<Rows[number]>(
        isPostgres
          ? "SELECT setting AS n FROM pg_settings WHERE name = 'statement_timeout'"
          : 'SELECT @@SESSION.max_statement_time * 1000 AS n',
      );
      expect(Number(row?.n)).to.equal(30_000);
      const slow = isPostgres
        ? database.transact(async (tx) => {
            await tx.select("SELECT set_config('statement_timeout', '100', true)");
            await tx.select(pause(20));
          })
        : database.select('SET STATEMENT max_statement_time = 0.1 FOR SELECT SLEEP(20)');
      await failSoon([slow]);
      expect(await answers(database)).to.have.length(1);
    });

    it('J17 times are in UTC whatever the time zone of the server', async () => {
      const admin = open();
      const name = new URL(url).pathname.slice(1);
      await (
        await admin.loadSequelize()
      ).query(isPostgres ? `ALTER DATABASE ${name} SET timezone = 'Asia/Tokyo'` : "SET GLOBAL time_zone = '+09:00'");
      try {
        const database = open();
        const [row] = await database.select<{ zone: string }>(
          isPostgres
            ? "SELECT EXTRACT(timezone FROM NOW()) || ' s' AS zone"
            : "SELECT CONCAT(TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW()), ' s') AS zone",
        );
        expect(row?.zone).to.match(/^0(?:\.0+)? s$/);
      } finally {
        if (!isPostgres) await (await admin.loadSequelize()).query("SET GLOBAL time_zone = 'SYSTEM'");
      }
    });

    it('J22 lookups distinguish letter case even if the database would not', async () => {
      const database = open();
      const to = new URL(url).pathname.slice(1);
      if (!isPostgres) await (await database.loadSequelize()).query(`ALTER DATABASE ${to} COLLATE utf8mb4_general_ci`);
      await new Migrator(database, '0.1.0').up();
      const records = new SqlRecords(database, new SecretBox(randomBytes(32)));
      const [lower, upper] = [`abc-${randomUUID()}`, `ABC-${randomUUID()}`];
      for (const id of [lower, upper, lower.toUpperCase()]) {
        await records.change((tx) => tx.insertProject(aNewProject({ id, name: id })));
      }
      expect((await records.project(lower))?.id).to.equal(lower);
      expect((await records.project(lower.toUpperCase()))?.id).to.equal(lower.toUpperCase());
      expect(await records.project(upper.toLowerCase())).to.equal(null);
    });

    it('F05 every statement reports how many rows it matched, and fails if the driver does not report it', async () => {
      const database = open();
      await countsRows(database);
      const sequelize = await database.loadSequelize();
      const query = sequelize.query.bind(sequelize) as (...args: unknown[]) => Promise<unknown>;
      for (const shape of [undefined, null, [], [[], { affectedRows: 1 }], [null, 1], '1', 1.5, NaN]) {
        sequelize.query = (async (...args: unknown[]) => {
          const answer = await query(...args);
          return String(args[0]).startsWith('UPDATE') ? shape : answer;
        }) as typeof sequelize.query;
        const failure = await failureOf(database.transact((tx) => tx.execute('UPDATE counted SET n = n + 1')));
        expect(failure, JSON.stringify(shape)).to.be.instanceOf(StoreUnavailable);
      }
      sequelize.query = query as typeof sequelize.query;
      expect(await database.select('SELECT n FROM counted')).to.deep.equal([{ n: 1 }]);
    });
  });
}
