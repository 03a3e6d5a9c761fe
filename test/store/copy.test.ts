/** `llmp migrate copy` between all databases: every kind of row, with odd values. */
import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { chownSync, cpSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SecretBox } from '../../daemon/store/secrets.js';
import { openDatabase } from '../../daemon/store/databases.js';
import { firstIdOf, HOUR_MS } from '../../daemon/core/usage.js';
import type { Cell } from '../../daemon/store/sql/columns.js';
import type { CopiedRow, CopiedTable } from '../../daemon/store/sql/copied-rows.js';
import { indexesOf as removableIndexesOf } from '../../daemon/store/sql/copied-indexes.js';
import { CopiedByAnother, PROGRESS_COLUMNS, PROGRESS_TABLE } from '../../daemon/store/sql/copy-progress.js';
import { COPIED_TABLES, copyTable, progressOf } from '../../daemon/store/sql/copying.js';
import type { Bind, Database } from '../../daemon/store/sql/database.js';
import { columnList } from '../../daemon/store/sql/table.js';
import { AUDIT } from '../../daemon/store/sql/tables.js';
import { copyDatabase } from '../../daemon/ops/copy.js';
import { SqlAnchors } from '../../daemon/store/sql/anchors.js';
import { SqlRecords } from '../../daemon/store/sql/records.js';
import { upstreamKeyContext } from '../../daemon/store/sql/projects.js';
import { databaseAddress } from '../../config/database-url.js';
import { realClock } from '../../daemon/process/clock.js';
import { readVersion } from '../../config/version.js';
import { Migrator } from '../../migrations/migrator.js';
import { llmp, type Situation } from '../cli/captured.js';
import { canary, canaryEncryptionKey } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder, UPSTREAM_KEY } from '../support/daemon.js';
import { spawnDaemon } from '../support/process.js';
import { startProvider } from '../support/provider.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';

const KEY = canaryEncryptionKey();
const OTHER_KEY = canaryEncryptionKey();
const boxOf = (key: string) => new SecretBox(Buffer.from(key, 'base64'));
const UPSTREAM = canary('upstream');
const ROWS = 7;
const CAUSES = COPIED_TABLES.find(({ name }) => name === 'usage_causes')!;

/** A database as the settings and `--to` name it. */
class Place {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  get isServer(): boolean {
    return this.url.includes('://');
  }

  get env(): Record<string, string> {
    const [driver = ''] = this.url.split(':');
    return { DATABASE_URL: this.url, DB_DRIVER: this.isServer ? driver : 'sqlite', ENCRYPTION_KEY: KEY };
  }

  async use<T>(work: (database: Database) => Promise<T>): Promise<T> {
    const database = openDatabase({ database: databaseAddress.parse(this.url)! }, realClock);
    try {
      return await work(database);
    } finally {
      await database.close();
    }
  }
}

const newFile = () => new Place(join(temporaryFolder(), 'llmp.db'));
const newPlace = async (kind: 'sqlite' | ServerKind) =>
  kind === 'sqlite' ? newFile() : new Place(await (await DatabaseServer.shared(kind)).newDatabase());

const copyTo = (from: Place, to: Place, more = '', situation: Situation = {}) =>
  llmp(['migrate', 'copy', '--to', to.url, '-o', 'json', ...more.split(' ').filter(Boolean)], {
    ...situation,
    env: { ...from.env, ...situation.env },
  });

/** Texts that a database, a driver or JSON could change. */
const ODD = [
  '',
  `'"\\`,
  '$1 $name ? %s :x',
  '😀🏳️‍🌈',
  'ä',
  '\t\r\n\u0001\b\f\u007f\u0085\uffff',
  ' \u2028 null',
  '{"a":[1]}',
];

interface SchemaColumn {
  type: string;
  allowNull: boolean;
}

function cellFor(table: CopiedTable, name: string, { type, allowNull }: SchemaColumn, row: number): Cell {
  const column = Object.values(table.columns).find((it) => it.name === name)!;
  if (name === 'project_id' && ['tokens', 'trusts'].includes(table.name)) return `id ${row} 😀`;
  if (allowNull && row % 3 === 0) return null;
  switch (column.type) {
    case 'flag':
      return row % 2 === 0;
    case 'number':
      if (name === 'id') return 1;
      if (name === 'recorded_at') return 2 ** 42 - row; // The word index of SQLite has room for times until 2109.
      if (table.key.includes(name) || name === 'seq') return row + 1;
      if (type === 'INTEGER') return [0, 1, 2 ** 31 - 1][row % 3]!;
      return [0, 1, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER, 2 ** 31, 2 ** 45 + 1][row % 6]!;
    case 'json':
      return JSON.stringify({ odd: ODD, row, long: '😀'.repeat(row === 1 ? 12_000 : 1) });
    case 'text': {
      const length = Number(/\((\d+)\)/.exec(type)?.[1] ?? 1_000);
      const isKey = table.key.includes(name) || ['digest', 'name'].includes(name);
      if (name === 'id') return `id ${row} 😀`;
      const text = isKey ? `${row}${ODD[row % ODD.length]}` : row === 1 ? '😀'.repeat(length) : ODD[row % ODD.length]!;
      return Array.from(text).slice(0, length).join('');
    }
  }
}

/** Fills every table of a database that has none. */
async function fill(place: Place, rows = ROWS): Promise<void> {
  await place.use(async (database) => {
    await new Migrator(database, readVersion()).up();
    const queries = (await database.loadSequelize()).getQueryInterface();
    for (const table of COPIED_TABLES) {
      const schema = (await queries.describeTable(table.name)) as unknown as Record<string, SchemaColumn>;
      const isSingle = ['change_seq', 'prices_in_force'].includes(table.name);
      await database.transact(async (tx) => {
        if (isSingle) await tx.execute(`DELETE FROM ${table.name}`);
        for (let row = 0; row < (isSingle ? 1 : rows); row++) {
          const bind: Bind = {};
          for (const [name, column] of Object.entries(schema)) bind[name] = cellFor(table, name, column, row);
          if (table.name === 'projects') {
            const { text, keyId } = boxOf(KEY).seal(UPSTREAM, upstreamKeyContext(String(bind.id)));
            Object.assign(bind, { api_key: text, api_key_id: keyId });
          }
          if (table.name === 'instances') Object.assign(bind, { heartbeat_at: 1 });
          const names = Object.keys(bind);
          await tx.execute(
            `INSERT INTO ${table.name} (${names.join(', ')}) VALUES (${names.map((name) => `$${name}`).join(', ')})`,
            bind,
          );
        }
      });
    }
  });
}

/** All rows of all tables, alike on all databases; without what a copy changes on purpose. */
const contentOf = (place: Place): Promise<Record<string, CopiedRow[]>> =>
  place.use(async (database) => {
    const content: Record<string, CopiedRow[]> = {};
    for (const { name, key, columns } of COPIED_TABLES) {
      const rows = await database.select<CopiedRow>(`SELECT * FROM ${name} ORDER BY ${key.join(', ')}`);
      content[name] = rows.map((row) => {
        for (const column of Object.values(columns))
          if (column.type === 'flag' && row[column.name] !== null) row[column.name] = Boolean(row[column.name]);
        if (name === 'audit_anchors') row.chain = String(row.chain).replace(/^[\w.-]+:(?=\d)/, '');
        return { ...row };
      });
    }
    return content;
  });

/** Names of the indexes that a migration of ours has made, by table. */
const indexesOf = (place: Place): Promise<Record<string, string[]>> =>
  place.use(async (database) => {
    const queries = (await database.loadSequelize()).getQueryInterface();
    const indexes: Record<string, string[]> = {};
    for (const { name: table } of COPIED_TABLES) {
      const found = (await queries.showIndex(table)) as { name: string }[];
      // The others have other names on each database.
      const names = new Set(found.map(({ name }) => name).filter((name) => name.startsWith(`${table}_`)));
      indexes[table] = [...names].filter((name) => !/_(pkey|key|fk|ibfk)(_\d)?$/.test(name)).sort();
    }
    return indexes;
  });

const ROUTE = ['sqlite', 'postgres', 'mysql', 'sqlite', 'mysql', 'postgres', 'sqlite'] as const;
const WITHOUT_SERVERS = WITHOUT.postgres || WITHOUT.mysql;

describe('llmp migrate copy', function () {
  this.timeout(120_000);

  it(`copies every table as it is, in all six directions between three databases${WITHOUT_SERVERS}`, async function () {
    if (WITHOUT_SERVERS) this.skip();
    let from = await newPlace('sqlite');
    await fill(from);
    const content = await contentOf(from);
    const indexes = await indexesOf(from);
    expect(indexes.tokens).to.include('tokens_spent');
    for (const kind of ROUTE.slice(1)) {
      const to = await newPlace(kind);
      const { exitCode, out, err } = await copyTo(from, to);
      expect({ exitCode, err }, `to ${kind}`).to.deep.equal({ exitCode: 0, err: '' });
      const { complete, tables } = JSON.parse(out) as { complete: boolean; tables: { table: string; rows: number }[] };
      expect(complete).to.equal(true);
      expect(Object.fromEntries(tables.map(({ table, rows }) => [table, rows]))).to.deep.equal(
        Object.fromEntries(Object.entries(content).map(([name, rows]) => [name, rows.length])),
      );
      expect(await contentOf(to), `on ${kind}`).to.deep.equal(content);
      expect(await indexesOf(to), `on ${kind}`).to.deep.equal(indexes);
      await to.use(async (database) => {
        const found = await new SqlRecords(database, boxOf(KEY)).auditRecords(
          { text: 'odd' },
          { limit: 100, after: null },
        );
        expect(found.rows.length, 'records found by a word').to.be.greaterThan(2);
        expect((await new Migrator(database, readVersion()).up()).applied.map(({ name }) => name)).to.deep.equal([
          '0001-first-schema',
        ]);
        expect((await new SqlAnchors(database).last('1' + ODD[1]!))?.line, 'the anchor of a chain').to.equal(2);
      });
      from = to;
    }
  });

  it(`lets every client go on with what is left of its token, with another encryption key${WITHOUT.postgres}`, async function () {
    if (WITHOUT.postgres) this.skip();
    const provider = await startProvider();
    const from = await startDaemon({ upstream: provider.url, env: { ENCRYPTION_KEY: KEY } });
    const project = await from.createProject();
    const token = await from.createToken(project.id, { max_requests: 10 });
    for (let n = 0; n < 5; n++) expect((await from.call(token.token)).status).to.equal(200);
    const old = new Place(from.databasePath);
    const to = await newPlace('postgres');
    const settingsFile = join(from.dir, 'new.env');
    writeFileSync(
      settingsFile,
      `DB_DRIVER=postgres\nDATABASE_URL=${to.url}\nENCRYPTION_KEY_FILE=${join(from.dir, 'new.key')}\n`,
      {
        mode: 0o600,
      },
    );
    writeFileSync(join(from.dir, 'new.key'), OTHER_KEY, { mode: 0o600 });
    const copy = (more = '') =>
      llmp(`migrate copy --to-env-file ${settingsFile} ${more}`.trim(), { env: { ...old.env, ENCRYPTION_KEY: KEY } });

    const whileRunning = await copy();
    expect(whileRunning.exitCode).to.equal(4);
    expect(whileRunning.err).to.match(/in use by another llmp process. Stop the daemon/);
    expect((await copy('--prepare')).exitCode, 'beforehand').to.equal(0);
    await from.createToken(project.id, { name: 'issued since' });
    expect((await copy('--prepare')).exitCode, 'once more').to.equal(0);
    const early: unknown = await startDaemon({ env: { ...to.env, ENCRYPTION_KEY: OTHER_KEY } }).catch(
      (error: unknown) => error,
    );
    expect((early as Error).message).to.include('a copy into this database is not complete');
    await from.stop();
    const { exitCode, err } = await copy();
    expect(exitCode, err).to.equal(0);

    const files = { AUDIT_LOG_FILE: join(from.dir, 'audit.log') };
    const verified = await llmp('audit verify', { env: { ...to.env, ENCRYPTION_KEY: OTHER_KEY, ...files } });
    expect(verified.exitCode, verified.err).to.equal(0);
    const next = await startDaemon({
      upstream: provider.url,
      dir: from.dir,
      env: { ...to.env, ENCRYPTION_KEY: OTHER_KEY },
    });
    const statuses: number[] = [];
    for (let n = 0; n < 6; n++) statuses.push((await next.call(token.token)).status);
    expect(statuses).to.deep.equal([200, 200, 200, 200, 200, 429]);
    expect(provider.received.map(({ headers }) => headers.authorization)).to.deep.equal(
      Array.from({ length: 10 }, () => `Bearer ${UPSTREAM_KEY}`),
    );
    const found = await next.manage('GET', '/manage/audit?q=issued');
    expect(found.body).to.have.lengthOf(1);
    await next.stop();
    await provider.stop();
  });

  it('copies late and removed usage again that was copied beforehand', async () => {
    const from = newFile();
    await fill(from);
    const hourMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
    const idAt = (days: number, n: number) => `${firstIdOf(hourMs - days * 24 * HOUR_MS)}8000-8000-00000000000${n}`;
    const add = (id: string, requests: number) =>
      from.use((database) =>
        database.transact((tx) =>
          tx.execute(
            `INSERT INTO usage_hourly (id, hour_ms, token_id, project_id, outcome, code, model, requests)
             VALUES ($id, 0, '', '', '', '', '', $requests) ON CONFLICT (id) DO UPDATE SET requests = requests + $requests`,
            { id, requests },
          ),
        ),
      );
    await from.use((database) => database.transact((tx) => tx.execute('DELETE FROM usage_hourly')));
    for (const days of [9, 8, 7, 3]) for (const n of [1, 2]) await add(idAt(days, n), 5);
    const to = newFile();
    expect((await copyTo(from, to, '--prepare')).exitCode).to.equal(0);
    await add(idAt(7, 1), 1);
    await add(idAt(3, 3), 1);
    await add(idAt(0, 1), 1);
    await from.use((database) =>
      database.transact((tx) => tx.execute('DELETE FROM usage_hourly WHERE id < $id', { id: idAt(8, 2) })),
    );
    const { exitCode, err } = await copyTo(from, to);
    expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: '' });
    expect(await contentOf(to)).to.deep.equal(await contentOf(from));
  });

  it('continues after ^C, and only if nobody used the old database since', async () => {
    const from = newFile();
    await fill(from);
    const to = newFile();
    const interrupted = await copyTo(from, to, '', { interrupted: Promise.resolve() });
    expect(interrupted.exitCode).to.equal(130);
    expect(interrupted.err).to.include('--resume');
    expect((await copyTo(from, to)).err).to.include('was interrupted. Continue it with --resume');
    const useOld = (seq: number) =>
      from.use((database) => database.transact((tx) => tx.execute('UPDATE change_seq SET seq = seq + $seq', { seq })));
    await useOld(-1);
    expect((await copyTo(from, to, '--resume')).err).to.include('was used since the copy was interrupted');
    await useOld(1);
    expect((await copyTo(from, to, '--resume')).exitCode).to.equal(0);
    expect(await contentOf(to)).to.deep.equal(await contentOf(from));
  });

  it('begins again after a process that was killed before it had marked a database of MySQL', async () => {
    const [from, to] = [newFile(), newFile()];
    await fill(from, 1);
    const columns = 'name VARCHAR(100) PRIMARY KEY, min_build VARCHAR(20) NOT NULL, applied_at BIGINT NOT NULL';
    await to.use((database) => database.transact((tx) => tx.execute(`CREATE TABLE schema_migrations (${columns})`)));
    const { exitCode, err } = await copyTo(from, to);
    expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: '' });
    expect(await contentOf(to)).to.deep.equal(await contentOf(from));
  });

  it('leaves a table with its indexes that another process has copied meanwhile', async () => {
    const [from, to] = [newFile(), newFile()];
    await fill(from);
    await to.use((database) => new Migrator(database, readVersion()).up());
    const indexes = await indexesOf(to);
    const failure: unknown = await from.use((source) =>
      to.use(async (target) => {
        await target.transact((tx) => tx.execute(`CREATE TABLE ${PROGRESS_TABLE} (${PROGRESS_COLUMNS})`));
        const options = { source, target, conversions: new Map(), onRows: () => undefined };
        const first = await progressOf(target, CAUSES);
        const definitions = (await removableIndexesOf(target, CAUSES.name)).map(({ definition }) => definition);
        await first.set({ ...first.value, indexes: definitions });
        const second = await progressOf(target, CAUSES);
        await copyTable(options, CAUSES, first);
        return copyTable(options, CAUSES, second).catch((error: unknown) => error);
      }),
    );
    expect(failure).to.be.instanceOf(CopiedByAnother);
    expect(indexes.usage_causes).to.deep.equal(['usage_causes_time']);
    expect(await indexesOf(to)).to.deep.equal(indexes);
  });

  it('makes files that the owner of their folder can open', async () => {
    const [from, to] = [newFile(), newFile()];
    await fill(from, 1);
    const folder = dirname(to.url);
    const isRoot = process.getuid?.() === 0;
    if (isRoot) chownSync(folder, 12_345, 12_346);
    writeFileSync(`${from.url}.key`, KEY, { mode: 0o600 });
    const { exitCode, err } = await llmp(`migrate copy --to ${to.url} -o json`, { env: { DATABASE_URL: from.url } });
    expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: '' });
    const wanted = statSync(folder);
    for (const end of ['', '.lock', '.key']) {
      const { uid, gid, mode } = statSync(to.url + end);
      expect([uid, gid], end).to.deep.equal([wanted.uid, wanted.gid]);
      if (end !== '.lock') expect(mode & 0o777, end).to.equal(0o600);
    }
  });

  it('exits with 9 and names the table that differs', async () => {
    const from = newFile();
    await fill(from);
    const to = newFile();
    await copyTo(from, to, '', { interrupted: Promise.resolve() });
    await to.use((database) => database.transact((tx) => tx.execute("UPDATE projects SET api_key_hint = '?!'")));
    const { exitCode, err, out } = await copyTo(from, to, '--resume -o csv');
    expect({ exitCode, err }).to.deep.equal({
      exitCode: 9,
      err: 'llmp: the copy differs in projects. Do not use it: empty the new database, and copy again\n',
    });
    expect(out).to.match(/^projects,7,[0-9a-f]{64},false\r$/m);
  });

  describe('is refused before the first row', () => {
    const cases: Record<
      string,
      [change: (from: Place) => Promise<Place | string> | Place | string, says: RegExp, exitCode?: number]
    > = {
      'for the same database': [(from) => from, /the one that DATABASE_URL names/],
      'for what is no URL, without repeating it': [
        () => 'postgres://llmp:canary-pw@@host/x',
        /^(?!.*canary-pw).*--to is not the URL of a database/,
        2,
      ],
      'if the new database has rows': [
        async () => {
          const other = newFile();
          await fill(other, 1);
          return other;
        },
        /is not empty: the table \w+ has rows/,
      ],
      'if the new database has tables of something else': [
        async () => {
          const other = newFile();
          await other.use((database) => database.transact((tx) => tx.execute('CREATE TABLE tokens (id INTEGER)')));
          return other;
        },
        /is not empty: it has a table tokens, which is not of llmp/,
      ],
      'if another database was prepared': [
        async () => {
          const [other, to] = [newFile(), newFile()];
          await fill(other, 2);
          expect((await copyTo(other, to, '--prepare')).exitCode).to.equal(0);
          return to;
        },
        /has audit records that the old one does not have: another database was prepared/,
      ],
      'if the old database does not exist': [(from) => (rmSync(from.url), newFile()), /does not exist/],
      'if the old schema is older': [
        async (from) => {
          await from.use((database) => database.transact((tx) => tx.execute('DELETE FROM schema_migrations')));
          return newFile();
        },
        /older than this release: 0001-first-schema is missing. Apply it with: llmp migrate up --direct/,
      ],
      'if the old schema is newer': [
        async (from) => {
          await from.use((database) =>
            database.transact((tx) => tx.execute("INSERT INTO schema_migrations VALUES ('0099-later', '0.0.1', 1)")),
          );
          return newFile();
        },
        /is newer than this release: it has 0099-later/,
      ],
      'if the new database cannot be reached': [() => 'postgres://llmp@127.0.0.1:9/llmp', /the new database: /, 69],
      'if another release has begun the copy': [
        async (from) => {
          const to = newFile();
          expect((await copyTo(from, to, '--prepare')).exitCode).to.equal(0);
          await to.use((database) =>
            database.transact((tx) =>
              tx.execute(`UPDATE copy_progress SET state = JSON_SET(state, '$.release', '0.0.9') WHERE name = 'copy'`),
            ),
          );
          return to;
        },
        /the copy was begun with llmp 0\.0\.9\. Continue it with that release, or empty the new database/,
      ],
      'without room': [() => '/proc/llmp.db', /has 0 B left, and the old database has/],
      'with --resume, if there is nothing to continue': [() => `${newFile().url} --resume`, /no interrupted copy/],
    };
    for (const [when, [change, says, code = 4]] of Object.entries(cases)) {
      it(when, async () => {
        const from = newFile();
        await fill(from, 1);
        const to = await change(from);
        const [url = '', ...more] = (typeof to === 'string' ? to : to.url).split(' ');
        const { exitCode, err, out } = await copyTo(from, new Place(url), more.join(' '));
        expect(err).to.match(says);
        expect({ exitCode, out }).to.deep.equal({ exitCode: code, out: '' });
      });
    }

    it(`while an instance uses a server${WITHOUT.postgres}`, async function () {
      if (WITHOUT.postgres) this.skip();
      const from = await newPlace('postgres');
      await fill(from, 1);
      await from.use((database) =>
        database.transact((tx) =>
          tx.execute('UPDATE instances SET heartbeat_at = $now, expired_at = 0', { now: Date.now() }),
        ),
      );
      const { exitCode, err } = await copyTo(from, newFile());
      expect(err).to.match(/a daemon used the old database \d+ s ago. Stop all daemons/);
      expect(exitCode).to.equal(4);
    });
  });

  it(`copies what a server would cut or take for the same${WITHOUT_SERVERS}`, async function () {
    if (WITHOUT_SERVERS) this.skip();
    const from = newFile();
    await fill(from, 1);
    const letters = 'x'.repeat(63);
    await from.use((database) =>
      database.transact(async (tx) => {
        await tx.execute('UPDATE tokens SET name = $name', { name: `${letters}𠀀` });
        await tx.execute('UPDATE audit SET token_id = (SELECT id FROM tokens)');
        for (const model of ['gpt', 'gpt ', 'gpt  ']) {
          await tx.execute(
            `INSERT INTO usage_sums (kind, from_ms, project_id, token_id, model, requests) VALUES ('token_day', 1, 'p', 't', $model, 1)`,
            { model },
          );
          await tx.execute(
            `INSERT INTO usage_minutes (from_ms, token_id, project_id, model, requests) VALUES (1, 't', 'p', $model, 1)`,
            { model },
          );
        }
      }),
    );
    for (const kind of ['postgres', 'mysql'] as const) {
      const to = await newPlace(kind);
      const { exitCode, err } = await copyTo(from, to);
      expect({ exitCode, err }, kind).to.deep.equal({ exitCode: 0, err: '' });
      const end = kind === 'mysql' ? '\u00a0' : ' ';
      for (const table of ['usage_sums', 'usage_minutes'])
        expect(
          (
            await to.use((database) =>
              database.select<{ model: string }>(`SELECT model FROM ${table} WHERE token_id = 't'`),
            )
          )
            .map(({ model }) => model)
            .sort(),
          `${kind} ${table}`,
        ).to.deep.equal(['gpt', `gpt${end}`, `gpt${end}${end}`]);
      const found = await to.use((database) =>
        new SqlRecords(database, boxOf(KEY)).auditRecords({ text: `${letters}𠀀` }, { limit: 10, after: null }),
      );
      expect(found.rows, kind).to.have.lengthOf(1);
    }
  });

  it(`names the row that another kind of database cannot store${WITHOUT_SERVERS}`, async function () {
    if (WITHOUT_SERVERS) this.skip();
    const odd: [ServerKind, string, RegExp][] = [
      ['postgres', `name = 'a' || CHAR(0)`, /the column name of the row id 3 😀 contains a NUL character/],
      ['mysql', `name = '${'x'.repeat(101)}'`, /tokens: the new database does not store the row id 3 😀: .*too long/],
      [
        'mysql',
        `digest = (SELECT digest FROM tokens WHERE id LIKE 'id 1 %') || ' '`,
        /tokens: the new database does not store the row id 3 😀: it is the same as another one/,
      ],
    ];
    for (const [kind, change, says] of odd) {
      const from = newFile();
      await fill(from);
      await from.use((database) =>
        database.transact((tx) => tx.execute(`UPDATE tokens SET ${change} WHERE id LIKE 'id 3 %'`)),
      );
      const { exitCode, err } = await copyTo(from, await newPlace(kind));
      expect(err).to.match(says);
      expect(exitCode).to.equal(9);
    }
  });

  it('keeps what a daemon that was killed has not yet written to its file, and counts what it had reserved', async () => {
    const provider = await startProvider();
    const settings = { ENCRYPTION_KEY: KEY };
    const made = await startDaemon({ upstream: provider.url, env: settings });
    const project = await made.createProject();
    const token = await made.createToken(project.id, { max_requests: 10 });
    await made.stop();
    const killed = await spawnDaemon({
      ...settings,
      MANAGEMENT_TOKEN,
      DATABASE_URL: made.databasePath,
      UPSTREAM_BASE_URL: provider.url,
    });
    const call = async (url: string) =>
      (await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${token.token}` } })).status;
    for (let n = 0; n < 5; n++) expect(await call(killed.url)).to.equal(200);
    await killed.kill();
    expect(statSync(`${made.databasePath}-wal`).size, 'not yet written').to.be.greaterThan(0);
    const [untouched, copied] = [temporaryFolder(), temporaryFolder()];
    for (const end of ['', '-wal']) cpSync(made.databasePath + end, join(untouched, `llmp.db${end}`));

    const { exitCode, err } = await copyTo(new Place(made.databasePath), new Place(join(copied, 'llmp.db')));
    expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: '' });
    const served: number[] = [];
    for (const dir of [untouched, copied]) {
      const before = provider.received.length;
      const next = await startDaemon({ upstream: provider.url, dir, env: settings });
      for (let n = 0; n < 10; n++) await next.call(token.token);
      await next.stop();
      served.push(provider.received.length - before);
    }
    expect(served[1]).to.equal(served[0]).and.to.be.at.most(5);
    await provider.stop();
  });

  it('lets no daemon use the new database from the first table on', async () => {
    const from = newFile();
    await fill(from, 2);
    const refusalIn = (place: Place) =>
      place.use((database) =>
        new Migrator(database, readVersion()).up().then(
          () => 'none',
          (error: unknown) => String(error),
        ),
      );
    const half = newFile();
    await half.use((database) => database.transact((tx) => tx.execute('CREATE TABLE tokens_spent (id INTEGER)')));
    expect((await copyTo(from, half)).err).to.include('tokens_spent');
    expect(await refusalIn(half)).to.include('a copy into this database is not complete');

    // One that has found an empty database waits until it can migrate it.
    const to = newFile();
    const late = await to.use((database) => {
      const waiting = Object.create(database, {
        inTransaction: {
          value: async (work: never) => {
            await copyTo(from, to, '', { interrupted: Promise.resolve() });
            return database.inTransaction(work);
          },
        },
        select: { value: database.select.bind(database) },
        loadSequelize: { value: database.loadSequelize.bind(database) },
      }) as Database;
      return new Migrator(waiting, readVersion()).up().then(
        () => 'none',
        (error: unknown) => String(error),
      );
    });
    expect(late).to.include('a copy into this database is not complete');
  });

  it(`ends one of two copies that begin at once${WITHOUT.postgres}`, async function () {
    if (WITHOUT.postgres) this.skip();
    const from = await newPlace('postgres');
    await fill(from, 2);
    const to = await newPlace('postgres');
    const both = await Promise.all([copyTo(from, to), copyTo(from, to)]);
    both.sort((one, other) => one.exitCode - other.exitCode);
    expect(both[0].exitCode, both[0].err).to.equal(0);
    expect(both[1].err).to.match(/another process copies into the same database|was interrupted. Continue it/);
    expect([4, 5]).to.include(both[1].exitCode);
    expect(await contentOf(to)).to.deep.equal(await contentOf(from));
  });

  it('copies beforehand what is written meanwhile, also if no daemon ran at first', async () => {
    const [from, to] = [newFile(), newFile()];
    await fill(from, 1);
    const { list } = columnList(AUDIT.columns);
    const read = list.replace(/\bseq\b/, 'i').replace(/\bid\b/, `'record ' || i`);
    const more = (first: number, last: number) =>
      `WITH RECURSIVE n(i) AS (SELECT ${first} UNION ALL SELECT i + 1 FROM n WHERE i < ${last})
       INSERT INTO audit (${list}) SELECT ${read} FROM n, audit WHERE audit.seq = 1`;
    await from.use((database) => database.transact((tx) => tx.execute(more(2, 3_000))));
    const writer = `new (require('sqlite3').Database)(process.argv[1]).exec(process.argv[2]).close()`;
    let isWritten = false;
    await copyDatabase({
      env: from.env,
      envFile: undefined,
      to: { url: to.url },
      isResume: false,
      isPrepare: true,
      onProgress: () => undefined,
      isInterrupted: () => {
        if (!isWritten)
          expect(spawnSync(process.execPath, ['-e', writer, from.url, more(3_001, 3_600)]).status).to.equal(0);
        isWritten = true;
        return false;
      },
    });
    const [copied] = await to.use((database) =>
      database.select<{ last: number }>('SELECT MAX(seq) AS last FROM audit'),
    );
    expect(copied?.last).to.equal(3_600);
  });
});
