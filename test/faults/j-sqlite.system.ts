import { spawnSync } from 'node:child_process';
import { existsSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync, closeSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { QueryTypes } from 'sequelize';
import { expect } from 'chai';
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import { SqliteDatabase } from '../../daemon/store/sql/sqlite-database.js';
import { SqliteWriter } from '../../daemon/store/sql/sqlite.js';
import {
  MANAGEMENT_TOKEN,
  startDaemon,
  temporaryFolder,
  type TestResponse,
  type TestDaemon,
} from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { auditOf, changesOf, problemOf, storedIn, write } from '../support/management.js';
import { launchDaemon } from '../support/process.js';
import { expectRefusal, RATE_LIMITED, UNAUTHORIZED, UNAVAILABLE } from '../support/refusals.js';
import { WITHOUT_MOUNT } from '../support/mounts.js';
import { ProxyFixture } from '../support/proxy-fixture.js';
import { addTokens } from './support/add-tokens.js';

const HOUR_MS = 3_600_000;
const WAL_BYTES = 16 * 2 ** 20;

const sqliteOf = ({ daemon }: TestDaemon) => daemon.stores.database as SqliteDatabase;

function expectUnavailable(answer: TestResponse): void {
  problemOf(answer, 503, 'unavailable');
  expect(answer.headers.get('retry-after')).to.match(/^[1-9]\d*$/);
}

describe('J: an SQLite database', function () {
  this.timeout(60_000);

  const scene = ProxyFixture.forEachTest({ AUDIT_LOG_FILE: '', AUDIT_USE_LOG_FILE: '' });

  const create = (daemon = scene.daemon) => daemon.manage('POST', '/manage/tokens', { project_id: scene.project.id });

  describe('that another process has locked', () => {
    let other: SqliteWriter;
    beforeEach(() => {
      other = new SqliteWriter(scene.daemon.databasePath);
    });
    afterEach(() => other.close());

    it('J01 a short lock is waited for', async () => {
      await other.run('BEGIN IMMEDIATE');
      const creating = create();
      let isDone = false;
      const noted = creating.then(() => (isDone = true));
      for (let n = 0; n < 20; n++) expect((await scene.get()).status).to.equal(200);
      expect(isDone).to.equal(false);
      await other.run('ROLLBACK');
      expect((await creating).status).to.equal(201);
      await noted;
    });

    it('J01 a longer lock gives 503 after five seconds, blocks no request or file, and the database is used again as soon as it is unlocked', async () => {
      const before = await storedIn(scene.daemon);
      await other.run('BEGIN IMMEDIATE');
      const beganAt = performance.now();
      const creating = create();
      const files: number[] = [];
      while (performance.now() - beganAt < 1_000) {
        const lookedAt = performance.now();
        await stat(scene.daemon.databasePath);
        files.push(performance.now() - lookedAt);
        expect((await scene.get()).status).to.equal(200);
      }
      // A request that waited for the lock would take seconds.
      expect(Math.max(...files)).to.be.below(500);
      expectUnavailable(await creating);
      expect(performance.now() - beganAt).to.be.within(4_500, 15_000);
      await other.run('ROLLBACK');
      const { tokens } = await storedIn(scene.daemon);
      expect(tokens).to.have.length(before.tokens?.length ?? 0);
      expect((await create()).status).to.equal(201);
    });
  });

  for (const writers of [60, 500]) {
    it(`J02 ${writers} parallel writers all succeed`, async () => {
      const answers = await Promise.all(Array.from({ length: writers }, () => create()));
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([201]));
      const ids = answers.map(({ body }) => (body as WireTokenCreated).id);
      expect(new Set(ids).size).to.equal(writers);
    });
  }

  it('J03 all connections have the same PRAGMAs: for reading, for transactions and for writing', async () => {
    const { readers, writer } = sqliteOf(scene.daemon);
    const sequelize = await sqliteOf(scene.daemon).loadSequelize();
    const expected = { busy_timeout: 5_000, journal_mode: 'wal', synchronous: 2, foreign_keys: 1 };
    const read = async (ask: (sql: string) => Promise<object[]>) => {
      const found: Record<string, unknown> = {};
      for (const name of Object.keys(expected)) {
        const [row = {}] = await ask(`PRAGMA ${name}`);
        [found[name]] = Object.values(row) as unknown[];
      }
      return found;
    };
    const SELECT = { type: QueryTypes.SELECT } as const;
    expect(await read((sql) => sequelize.query<object>(sql, SELECT))).to.deep.equal(expected);
    await sequelize.transaction(async (transaction) => {
      const ask = (sql: string) => sequelize.query<object>(sql, { ...SELECT, transaction });
      expect(await read(ask)).to.deep.equal(expected);
    });
    for (const connection of [writer, readers.usual, readers.long])
      expect(await read((sql) => connection.all<object>(sql))).to.deep.equal(expected);
  });

  /** Causes SQLite's own error, the same as with a file system that became read-only. @returns a function that undoes it. */
  function makeReadOnly(): () => void {
    const { writer } = sqliteOf(scene.daemon);
    const run = writer.run.bind(writer);
    writer.run = async (sql, bind) => {
      if (sql === 'BEGIN IMMEDIATE') await run('PRAGMA query_only = 1');
      return run(sql, bind);
    };
    return () => {
      writer.run = async (sql, bind) => {
        if (sql === 'BEGIN IMMEDIATE') await run('PRAGMA query_only = 0');
        return run(sql, bind);
      };
    };
  }

  it('J05 becomes read-only: changes and exhausted leases get 503, and tokens without a cap are served', async () => {
    const capped = await scene.daemon.createToken(scene.project.id, { max_requests: 100 });
    expect((await scene.get()).status).to.equal(200);
    const before = await storedIn(scene.daemon);
    const mend = makeReadOnly();
    expectUnavailable(await create());
    expect((await scene.get()).status).to.equal(200);
    expectRefusal(await scene.get(capped.token), UNAVAILABLE);
    expect((await storedIn(scene.daemon)).projects).to.deep.equal(before.projects);
    mend();
    await eventually('it takes changes again', async () => (await create()).status === 201);
    await eventually('a unit is available', async () => (await scene.get(capped.token)).status === 200);
  });

  describe('whose reply to a COMMIT is lost', () => {
    let lost = 0;
    const loseNext = () => {
      const { writer } = sqliteOf(scene.daemon);
      const run = writer.run.bind(writer);
      writer.run = async (sql, bind) => {
        const changed = await run(sql, bind);
        if (sql !== 'COMMIT') return changed;
        writer.run = run;
        lost += 1;
        throw Object.assign(new Error('SQLITE_IOERR: the reply is lost'), { code: 'SQLITE_IOERR' });
      };
    };
    beforeEach(() => {
      lost = 0;
    });

    it('J07 a change whose COMMIT has no reply is reported as unknown, and made once', async () => {
      loseNext();
      expectUnavailable(await create());
      expect(lost).to.equal(1);
      expect((await changesOf(scene.daemon)).filter(({ kind }) => kind === 'token.created')).to.have.length(2);
      expect((await auditOf(scene.daemon)).filter(({ action }) => action === 'token.create')).to.have.length(2);
      expect((await create()).status).to.equal(201);
    });

    it('J07 each use is counted once', async () => {
      let uses = 0;
      for (let n = 0; n < 5; n++) {
        loseNext();
        await eventually('the reply to a settlement is lost', async () => {
          expect((await scene.get()).status).to.equal(200);
          uses += 1;
          scene.daemon.clock.advance(250);
          return lost > n;
        });
      }
      await eventually('all is settled', async () => {
        scene.daemon.clock.advance(1_000);
        return (await scene.uses()) === uses;
      });
      await scene.daemon.stop();
      const next = await startDaemon({ dir: scene.daemon.dir });
      expect((await next.token(scene.token.id)).request_count).to.equal(uses);
      await next.stop();
    });
  });

  it('J21 the write-ahead log is truncated again after a long read', async () => {
    const wal = () => statSync(`${scene.daemon.databasePath}-wal`).size;
    await addTokens(scene.daemon, scene.project.id, 10_000);
    const reader = new SqliteWriter(scene.daemon.databasePath);
    await reader.run('BEGIN');
    await reader.all('SELECT COUNT(*) FROM tokens');
    const change = (n: number) => write(scene.daemon, 'UPDATE tokens SET name = $name', { name: `${n} `.repeat(30) });
    for (let n = 0; wal() <= WAL_BYTES; n++) await change(n);
    await reader.run('ROLLBACK');
    await reader.close();
    // The first write finds that everything can be copied back; the second starts the log from its beginning.
    await eventually('it is small again', async () => {
      await write(scene.daemon, "UPDATE tokens SET name = 'x' WHERE id = $id", { id: scene.token.id });
      return wal() <= WAL_BYTES;
    });
    expect((await create()).status).to.equal(201);
  });
});

describe('J: a clock that is changed', () => {
  let scene: ProxyFixture;
  afterEach(() => scene.close());

  it('J16 tokens expire by the system clock, forward and back', async () => {
    scene = await ProxyFixture.open();
    scene.token = await scene.daemon.createToken(scene.project.id, { duration_minutes: 30 });
    scene.daemon.clock.setWall(HOUR_MS);
    expectRefusal(await scene.get(), UNAUTHORIZED);
    scene.daemon.clock.setWall(-2 * HOUR_MS);
    expect((await scene.get()).status).to.equal(200);
    const late = await scene.daemon.createToken(scene.project.id, { duration_minutes: 30 });
    expect(Date.parse(late.expires_at) - Date.parse(late.created_at)).to.equal(30 * 60_000);
  });

  it('J16 a changed clock does not open or close rate windows, or change the age of cached responses', async () => {
    scene = await ProxyFixture.open({ IP_RATE_LIMIT: '3', HTTP_CACHE_ENABLED: 'true' });
    scene.provider.answer = (_req, res) => {
      res.writeHead(200, { 'Cache-Control': 'max-age=60' }).end('kept');
    };
    expect((await scene.get()).status).to.equal(200);
    for (const byMs of [HOUR_MS, -2 * HOUR_MS]) {
      scene.daemon.clock.setWall(byMs);
      if (byMs < 0) scene.token = await scene.daemon.createToken(scene.project.id);
      const answer = await scene.get();
      expect([answer.status, answer.header('x-proxy-cache')]).to.deep.equal([200, 'hit']);
      expect(Number(answer.header('age'))).to.be.within(0, 5);
    }
    expectRefusal(await scene.get(), RATE_LIMITED);
    scene.daemon.clock.setWall(2 * HOUR_MS);
    expectRefusal(await scene.get(), RATE_LIMITED);
    scene.daemon.clock.advance(60_000);
    expect((await scene.get()).status).to.equal(200);
  });
});

describe('J: a file that is damaged', function () {
  this.timeout(60_000);
  let dir: string;
  let secret: string;
  let projectId: string;
  const path = () => join(dir, 'llmp.db');

  beforeEach(async () => {
    const daemon = await startDaemon();
    ({ dir } = daemon);
    ({ id: projectId } = await daemon.createProject());
    ({ token: secret } = await daemon.createToken(projectId));
    await daemon.stop();
  });

  const overwrite = (at: number, bytes: number) => {
    const file = openSync(path(), 'r+');
    writeSync(file, Buffer.alloc(bytes, 0xff), 0, bytes, at);
    closeSync(file);
  };

  it('J18 damage in the first page: the daemon does not start, and the file is left unchanged', async () => {
    overwrite(100, 1_000);
    const damaged = readFileSync(path());
    const { exit, printed } = launchDaemon({ MANAGEMENT_TOKEN, DATABASE_URL: path() });
    expect(await exit).to.equal(70);
    expect(printed.stderr).to.match(/^llmp: .*malformed.*\n$/);
    expect(readFileSync(path()).equals(damaged)).to.equal(true);
  });

  it('J18 damage elsewhere: requests that need it get 503, never 401 or 404', async () => {
    const database = new SqliteDatabase(path());
    const [size] = await database.select<{ page_size: number }>('PRAGMA page_size');
    const roots = await database.select<{ rootpage: number }>(
      "SELECT rootpage FROM sqlite_master WHERE tbl_name = 'tokens' AND rootpage > 0",
    );
    await database.close();
    for (const { rootpage } of roots) overwrite((rootpage - 1) * size!.page_size, size!.page_size);
    const daemon = await startDaemon({ dir });
    expect((await daemon.call(secret)).status).to.equal(503);
    expectUnavailable(await daemon.manage('POST', '/manage/tokens', { project_id: projectId }));
    // With the number of its tokens.
    expectUnavailable(await daemon.manage('GET', `/manage/projects/${projectId}`));
    expect((await daemon.manage('GET', '/manage/usage')).status).to.equal(200);
    await daemon.stop().catch(() => undefined);
  });
});

describe(`J: a separate disk${WITHOUT_MOUNT}`, function () {
  this.timeout(60_000);
  let dir: string;
  let daemon: TestDaemon | null = null;

  before(function () {
    if (WITHOUT_MOUNT) this.skip();
  });
  const mount = (...options: string[]) => {
    const done = spawnSync('mount', ['-t', 'tmpfs', ...options, 'tmpfs', dir]);
    expect(done.status, done.stderr.toString()).to.equal(0);
  };
  beforeEach(() => {
    dir = temporaryFolder();
    mount('-o', 'size=4m');
  });
  afterEach(async () => {
    await daemon?.stop();
    daemon = null;
    spawnSync('umount', ['-l', dir]);
  });

  const filler = () => join(dir, 'filler');
  const fill = () => {
    try {
      writeFileSync(filler(), Buffer.alloc(8 * 2 ** 20));
    } catch (error) {
      expect(error).to.have.property('code', 'ENOSPC');
    }
  };
  const withoutFiles = { AUDIT_LOG_FILE: '', AUDIT_USE_LOG_FILE: '' };

  it('J04 a full disk: changes get 503 and leave nothing half-written, known tokens are served, and it recovers without a restart', async () => {
    daemon = await startDaemon({ dir, env: withoutFiles });
    const project = await daemon.createProject();
    const { token, id } = await daemon.createToken(project.id);
    await daemon.call(token);
    const fields = { project_id: project.id, name: 'x'.repeat(100) };
    const create = () => daemon!.manage('POST', '/manage/tokens', fields);
    fill();
    let created = 1;
    // The write-ahead log has some space left from before.
    await eventually('the disk is full', async () => {
      const answer = await create();
      if (answer.status === 201) created += 1;
      else expectUnavailable(answer);
      return answer.status === 503;
    });
    expect((await daemon.call(token)).status).to.equal(502); // Admitted, although there is no upstream.
    const stored = await storedIn(daemon);
    expect(stored.tokens).to.have.length(created);
    expect((await auditOf(daemon)).filter(({ action }) => action === 'token.create')).to.have.length(created);
    rmSync(filler());
    expect((await create()).status).to.equal(201);
    await eventually('uses are settled', async () => {
      daemon!.clock.advance(1_000);
      return (await daemon!.token(id)).request_count === 2;
    });
    expect(await daemon.daemon.stores.database.select('PRAGMA integrity_check')).to.deep.equal([
      { integrity_check: 'ok' },
    ]);
  });

  it('J04 a full disk at the first start is reported, and the next start with free space completes it', async () => {
    fill();
    const env = { MANAGEMENT_TOKEN, DATABASE_URL: join(dir, 'llmp.db'), ...withoutFiles };
    const { exit, printed } = launchDaemon(env);
    expect(await exit).not.to.equal(0);
    expect(printed.stderr).to.match(/^llmp: [^\n]*(?:full|ENOSPC|unable to open|disk I\/O)[^\n]*\n$/);
    rmSync(filler());
    daemon = await startDaemon({ dir, env: withoutFiles });
    await daemon.createProject();
  });

  it('J05 a read-only disk: the daemon does not start and reports the reason', async () => {
    const first = await startDaemon({ dir, env: withoutFiles });
    await first.stop();
    expect(spawnSync('mount', ['-o', 'remount,ro', dir]).status).to.equal(0);
    const { exit, printed } = launchDaemon({ MANAGEMENT_TOKEN, DATABASE_URL: join(dir, 'llmp.db'), ...withoutFiles });
    expect(await exit).to.equal(77);
    expect(printed.stderr).to.match(/^llmp: [^\n]+\n$/);
    expect(existsSync(join(dir, 'llmp.db'))).to.equal(true);
  });
});
