import { expect } from 'chai';
import {
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { SqliteDatabase } from '../../daemon/store/sql/sqlite-database.js';
import { canaryEncryptionKey } from '../support/canaries.js';
import { startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { type Provider, startProvider } from '../support/provider.js';
import { asOperatorError } from '../../daemon/ops/operator-error.js';
import { llmp } from './captured.js';

const KEY = canaryEncryptionKey();

describe('llmp backup and llmp restore', () => {
  let provider: Provider;
  let daemon: TestDaemon;
  let file: string;

  before(async () => {
    provider = await startProvider();
  });
  after(() => provider.stop());
  beforeEach(async () => {
    await start(temporaryFolder());
    file = join(daemon.dir, 'backup.db');
  });
  afterEach(() => daemon.stop());

  async function start(dir: string): Promise<void> {
    daemon = await startDaemon({ dir, upstream: provider.url, env: { ENCRYPTION_KEY: KEY } });
  }
  const here = (args: string, env: Record<string, string> = {}) =>
    llmp(args, { env: { DATABASE_URL: daemon.databasePath, ENCRYPTION_KEY: KEY, ...env } });
  const backUp = () => here(`backup ${file}`);
  const calls = async (token: string, count: number) => {
    const statuses: number[] = [];
    for (let n = 0; n < count; n++) statuses.push((await daemon.call(token)).status);
    return statuses;
  };

  it('goes back to the state of the backup, and says before what was served since', async () => {
    const project = await daemon.createProject();
    const capped = await daemon.createToken(project.id, { max_requests: 5 });
    const revoked = await daemon.createToken(project.id);
    expect(await calls(capped.token, 2)).to.deep.equal([200, 200]);
    const { exitCode, err } = await backUp();
    expect(exitCode, err).to.equal(0);
    expect(err).to.match(
      /^Backed up to .*backup\.db, .*\nIt does not contain the encryption key, whose fingerprint is [0-9a-f]{16}\./,
    );
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect(readdirSync(daemon.dir).filter((name) => name.startsWith('backup'))).to.deep.equal(['backup.db']);

    expect(await calls(capped.token, 2)).to.deep.equal([200, 200]);
    await daemon.manage('DELETE', `/manage/tokens/${revoked.id}`);
    const issued = await daemon.createToken(project.id);
    const whileRunning = await here(`restore ${file} --yes`);
    expect(whileRunning.exitCode).to.equal(4);
    expect(whileRunning.err).to.match(/is in use. Stop the daemon first/);
    await daemon.stop();

    const shown = await here(`restore ${file} -n`);
    expect(shown.exitCode).to.equal(0);
    for (const sentence of [
      'What was served since is forgotten',
      '1 token with a cap can make the same requests once more',
      '1 token issued since will be unknown',
      '1 token revoked since will be VALID AGAIN',
      '2 audit records will be only in the audit files',
      'Nothing was changed.',
    ])
      expect(shown.err).to.include(sentence);
    const unconfirmed = await here(`restore ${file}`);
    expect(unconfirmed.exitCode).to.equal(2);
    const restored = await here(`restore ${file} --yes -o json`);
    expect(restored.exitCode, restored.err).to.equal(0);
    const report = JSON.parse(restored.out) as Record<string, unknown>;
    expect(report).to.include({ restored: true, tokens_issued: 1, tokens_revoked: 1, caps_loosened: 1, records: 2 });
    expect(existsSync(String(report.kept))).to.equal(true);

    await start(daemon.dir);
    expect(await calls(revoked.token, 1)).to.deep.equal([200]);
    expect(await calls(issued.token, 1)).to.deep.equal([401]);
    // Units that were leased at the time of the backup count as used: the cap is never exceeded.
    const again = await calls(capped.token, 4);
    expect(again.filter((status) => status === 200).length).to.be.at.most(3);
    await daemon.stop();
    const back = await here(`restore ${String(report.kept)} --yes`);
    expect(back.exitCode, back.err).to.equal(0);
    await start(daemon.dir);
    expect(await calls(issued.token, 1), 'with the previous database').to.deep.equal([200]);
  });

  it('copies one state of a database that is written meanwhile', async () => {
    const database = new SqliteDatabase(daemon.databasePath);
    await database.transact((tx) => tx.execute('CREATE TABLE pairs (a BIGINT, b BIGINT, filler TEXT)'));
    await database.transact((tx) =>
      tx.execute(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
         INSERT INTO pairs SELECT 0, 0, HEX(RANDOMBLOB(500)) FROM n`,
      ),
    );
    const done = new AbortController();
    let writes = 0;
    const writing = (async () => {
      while (!done.signal.aborted) {
        await database.transact((tx) => tx.execute('UPDATE pairs SET a = a + 1, b = b + 1 WHERE rowid % 7 = 0'));
        writes += 1;
      }
    })();
    const { exitCode, err } = await backUp();
    done.abort();
    await writing;
    await database.close();
    expect(exitCode, err).to.equal(0);
    expect(writes).to.be.greaterThan(1);
    const copy = new SqliteDatabase(file);
    const states = await copy.select<{ a: number; b: number }>('SELECT DISTINCT a, b FROM pairs WHERE rowid % 7 = 0');
    await copy.close();
    expect(states).to.have.lengthOf(1);
    expect(states[0]?.a).to.equal(states[0]?.b);
  });

  it('says which rights come back', async () => {
    const change = async (...statements: string[]) => {
      const database = new SqliteDatabase(daemon.databasePath);
      await database.transact(async (tx) => {
        for (const sql of statements) await tx.execute(sql);
      });
      await database.close();
    };
    const { id } = await daemon.createProject();
    await daemon.stop();
    const end = Date.now() + 3_600_000;
    const until = [end, end, end, 1];
    const session = (n: number) => `INSERT INTO sessions (id, front_end, actor, name, begun_at, expires_at)
       VALUES ('s${n}', 'cli', 'person:x', '', 0, ${until[n]})`;
    const used = (digest: string, at: number) => `INSERT INTO used_jwts (digest, until_ms) VALUES ('${digest}', ${at})`;
    const trust = (n: number) => `INSERT INTO trusts
       (id, issuer, audience, match_claims, project_id, name, duration_minutes, max_requests, is_active, created_at, updated_at)
       VALUES ('t${n}', 'i', 'a', '{}', '${id}', 'n', 1, 0, TRUE, 1, 1)`;
    const operator = (
      n: number,
    ) => `INSERT INTO operators (id, name, digest, obfuscated, role, is_active, created_at, updated_at)
       VALUES ('o${n}', 'n${n}', 'd${n}', '', 'viewer', TRUE, 1, 1)`;
    await change(...[0, 1, 2, 3].map(session), ...[0, 1, 2].map(trust), ...[0, 1].map(operator), used('before', end));
    await backUp();
    await change(
      'UPDATE projects SET is_active = FALSE',
      "UPDATE operators SET is_active = FALSE, updated_at = 2 WHERE id = 'o1'",
      "DELETE FROM trusts WHERE id = 't1'",
      "UPDATE trusts SET updated_at = 2 WHERE id = 't2'",
      "UPDATE sessions SET ended_at = 1 WHERE id = 's1'",
      "DELETE FROM sessions WHERE id = 's3'",
      used('since', end),
      used('over', 1),
    );
    const { exitCode, err } = await here(`restore ${file} -n`);
    expect(exitCode, err).to.equal(0);
    expect(err.split('\n').filter((line) => /[A-Z]{4}|once more/.test(line))).to.deep.equal([
      'llmp: 1 project deactivated since will be ACTIVE AGAIN',
      'llmp: 1 operator changed or deactivated since will have their FORMER RIGHTS',
      'llmp: 2 trusts changed or deleted since will give tokens AS BEFORE',
      'llmp: 1 session ended since will be VALID AGAIN',
      'llmp: 1 JWT exchanged since can be exchanged once more',
    ]);
    await start(daemon.dir);
  });

  it('restores a plain copy with its log, which stays as it is, for the owner of the database', async () => {
    const isRoot = process.getuid?.() === 0;
    const [uid, gid] = isRoot ? [12_345, 12_346] : [process.getuid!(), process.getgid!()];
    const token = await daemon.createToken((await daemon.createProject()).id);
    const ends = ['', '-wal'];
    for (const end of ends) copyFileSync(daemon.databasePath + end, file + end);
    const bytes = () => ends.map((end) => readFileSync(file + end).toString('base64'));
    const before = bytes();
    await daemon.stop();
    const other = join(temporaryFolder(), 'other');
    writeFileSync(other, 'as it was');
    symlinkSync(other, `${daemon.databasePath}.restoring`);
    if (isRoot) chownSync(daemon.databasePath, uid, gid);
    const ownerOf = (path: string) => [statSync(path).uid, statSync(path).gid, statSync(path).mode & 0o777];
    const first = await here(`restore ${file} --yes`);
    expect(first.exitCode, first.err).to.equal(0);
    expect(ownerOf(daemon.databasePath)).to.deep.equal([uid, gid, 0o600]);
    expect(readFileSync(other, 'utf8')).to.equal('as it was');
    expect(bytes()).to.deep.equal(before);

    const dir = temporaryFolder();
    if (isRoot) chownSync(dir, uid, gid);
    const path = join(dir, 'llmp.db');
    const [linked, linkedFile] = [join(daemon.dir, 'linked.db'), join(daemon.dir, 'linked-backup.db')];
    symlinkSync(path, linked);
    symlinkSync(file, linkedFile);
    const second = await here(`restore ${linkedFile}`, { DATABASE_URL: linked });
    expect(second.exitCode, second.err).to.equal(0);
    for (const end of ['', '.lock']) expect(ownerOf(path + end).slice(0, 2), end).to.deep.equal([uid, gid]);
    await start(dir);
    expect(await calls(token.token, 1)).to.deep.equal([200]);
  });

  it('leaves nothing behind that it could not restore', async () => {
    await daemon.createProject();
    await daemon.stop();
    copyFileSync(daemon.databasePath, file);
    const copy = new SqliteDatabase(file);
    // It can be read, but not removed as a table.
    await copy.transact((tx) =>
      tx.execute('CREATE VIEW backup_of AS SELECT 1 AS taken_at, api_key_id AS key_id FROM projects'),
    );
    await copy.close();
    // Not its bytes: SQLite may move what is in the log into it when it is opened.
    const records = async () => {
      const present = new SqliteDatabase(daemon.databasePath);
      return present.select('SELECT id FROM audit ORDER BY seq').finally(() => present.close());
    };
    const before = await records();
    const { exitCode } = await here(`restore ${file} --yes`);
    expect(exitCode).to.not.equal(0);
    expect(before).to.be.an('array').that.is.not.empty;
    expect(await records()).to.deep.equal(before);
    expect(readdirSync(daemon.dir).filter((name) => /restoring|before/.test(name))).to.deep.equal([]);
    for (const text of ['SQLITE_FULL: database or disk is full', 'ENOSPC: no space left on device, write']) {
      const failure: unknown = await asOperatorError(Promise.reject(new Error(text))).catch((error: unknown) => error);
      expect(failure).to.include({ exitCode: 69, message: `the disk is full: ${text}` });
    }
    await start(daemon.dir);
  });

  it('restores where there is no database, with a key of the same fingerprint', async () => {
    const project = await daemon.createProject();
    const token = await daemon.createToken(project.id);
    await backUp();
    await daemon.stop();
    const dir = temporaryFolder();
    const other = { DATABASE_URL: join(dir, 'llmp.db') };
    const foreign = await here(`restore ${file}`, { ...other, ENCRYPTION_KEY: canaryEncryptionKey() });
    expect(foreign.err).to.match(
      /needs the encryption key with the fingerprint [0-9a-f]{16}, and the present one is [0-9a-f]{16}/,
    );
    expect(foreign.exitCode).to.equal(4);
    expect(existsSync(other.DATABASE_URL)).to.equal(false);
    const ends = ['-journal', '-wal'].map((end) => other.DATABASE_URL + end);
    for (const path of ends) writeFileSync(path, 'of a database that was removed');
    const { exitCode, err } = await here(`restore ${file}`, other);
    expect(exitCode, err).to.equal(0);
    expect(ends.filter((path) => existsSync(path))).to.deep.equal([]);
    expect(err).to.include('There is no present database, so what was served since is unknown');
    await start(dir);
    expect(await calls(token.token, 1)).to.deep.equal([200]);
  });

  /** So that copying it takes a while. */
  async function fill(): Promise<void> {
    const database = new SqliteDatabase(daemon.databasePath);
    await database.transact((tx) => tx.execute('CREATE TABLE filler AS SELECT ZEROBLOB(20000000) AS x'));
    await database.close();
  }
  const backups = () => readdirSync(daemon.dir).filter((name) => name.startsWith('backup'));
  const isBegun = () => eventually('it has begun', () => existsSync(`${file}.partial`));

  it('leaves nothing of what is interrupted, and replaces what a kill has left', async () => {
    await fill();
    const other = join(daemon.dir, 'other');
    writeFileSync(other, 'as it was');
    symlinkSync(other, `${file}.partial`);
    const backup = await here(`backup ${file}`);
    expect(backup.exitCode, backup.err).to.equal(0);
    expect(readFileSync(other, 'utf8')).to.equal('as it was');
    rmSync(file);

    writeFileSync(`${file}.partial`, 'left by a kill');
    const env = { DATABASE_URL: daemon.databasePath, ENCRYPTION_KEY: KEY };
    const isWritten = () => statSync(`${file}.partial`, { throwIfNoEntry: false })?.size ?? 0;
    const interrupted = eventually('it is being written', () => isWritten() > 100_000);
    const first = await llmp(`backup ${file}`, { env, interrupted, terminal: 80 });
    expect(first.exitCode, first.err).to.equal(130);
    expect(first.err)
      .to.match(/Interrupted\. Nothing was changed\.\n$/)
      .and.not.to.include('100 %');
    expect(backups()).to.deep.equal([]);

    await backUp();
    await daemon.stop();
    const before = statSync(daemon.databasePath).ino;
    const isRestoring = () => existsSync(`${daemon.databasePath}.restoring`);
    const second = await llmp(`restore --yes ${file}`, { env, interrupted: eventually('it restores', isRestoring) });
    expect(second.exitCode, second.err).to.equal(130);
    expect(statSync(daemon.databasePath).ino).to.equal(before);
    expect(readdirSync(daemon.dir).filter((name) => /restoring|before/.test(name))).to.deep.equal([]);
    await start(daemon.dir);
  });

  it('makes one backup to a file at a time', async () => {
    await fill();
    const first = backUp();
    await isBegun();
    const second = await backUp();
    expect(second.err).to.match(/^llmp: another backup to .*backup.db is running\n$/);
    expect(second.exitCode).to.equal(4);
    expect((await first).exitCode).to.equal(0);
    expect(backups()).to.deep.equal(['backup.db']);
  });

  it('says which key a backup needs if the settings do not have it', async () => {
    await daemon.createProject();
    const { exitCode, out, err } = await here(`backup ${file} -o json`, { ENCRYPTION_KEY: canaryEncryptionKey() });
    const needed = await here(`restore -n ${file}`, { DATABASE_URL: join(temporaryFolder(), 'llmp.db') });
    expect(needed.exitCode, needed.err).to.equal(0);
    const [id] = (JSON.parse(out) as { key_ids: string[] }).key_ids;
    expect(err).to.include(
      `the present settings do not have the key with the fingerprint ${id}: with them nobody can use`,
    );
    expect(exitCode).to.equal(9);
  });

  it('refuses what cannot be backed up or restored', async () => {
    await backUp();
    await daemon.stop();
    const at = (name: string) => join(daemon.dir, name);
    const made = (name: string, content: string | Buffer) => {
      writeFileSync(at(name), content);
      return at(name);
    };
    const text = made('text', 'not a database');
    const whole = readFileSync(file);
    const foreign = new SqliteDatabase(at('foreign.db'));
    await foreign.transact((tx) => tx.execute('CREATE TABLE notes (a BIGINT)'));
    copyFileSync(at('foreign.db-wal'), at('log.db-wal'));
    await foreign.close();
    const newer = new SqliteDatabase(made('newer.db', whole));
    await newer.transact((tx) => tx.execute("UPDATE schema_migrations SET min_build = '999.0.0'"));
    await newer.close();
    made('unfinished.db-journal', 'x');
    linkSync(daemon.databasePath, at('hard.db'));
    const refusals: [string, RegExp, number, Record<string, string>?][] = [
      [`backup ${file}`, /exists already/, 4],
      [`backup ${at('log.db')}`, /log.db-wal exists already/, 4],
      [`backup ${daemon.dir}`, /exists already/, 4],
      [
        'backup x.db',
        /is on a server, and this command is for SQLite. Use pg_dump/,
        4,
        { DATABASE_URL: 'postgres://a@b/c', DB_DRIVER: 'postgres' },
      ],
      ['backup x.db', /does not exist. Check DATABASE_URL/, 4, { DATABASE_URL: at('none.db') }],
      [`backup ${text}/x.db`, /text\/x.db.* does not exist, or its folder does not/, 4],
      [`backup ${at('none')}/x.db`, /none does not exist, or its folder does not/, 4],
      [`restore ${at('none.db')}`, /none.db does not exist/, 4],
      [`restore ${daemon.dir}`, /is not a file/, 4],
      [`restore ${daemon.databasePath}`, /is the database itself/, 4],
      [`restore ${at('hard.db')}`, /is the database itself/, 4],
      [`restore ${text}`, /text is not a backup of llmp/, 4],
      [`restore ${made('empty', '')}`, /empty is not a backup of llmp/, 4],
      [`restore ${at('foreign.db')}`, /foreign.db is not a backup of llmp/, 4],
      [`restore ${made('half.db', whole.subarray(0, whole.length / 2))}`, /half.db is damaged/, 4],
      [`restore ${at('newer.db')}`, /newer.db: the schema .* needs llmp 999.0.0 or newer/, 4],
      [`restore ${made('unfinished.db', whole)}`, /is not whole.*unfinished.db-journal/, 4],
    ];
    if (process.getuid?.() !== 0) {
      const folder = at('closed');
      mkdirSync(folder, { mode: 0o500 });
      refusals.push([`backup ${folder}/x.db`, /^llmp: no permission: .*closed\/x.db.partial/, 77]);
    }
    for (const [args, says, code, env] of refusals) {
      const { exitCode, err } = await here(args, env);
      expect(err).to.match(says);
      expect(exitCode, args).to.equal(code);
    }
    const ignored = await here(`restore -n ${made('log.db', whole)}`);
    expect(ignored.err, 'with the log of another file').to.include('Nothing was served since');
    await start(daemon.dir);
  });
});
