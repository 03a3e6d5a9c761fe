import { expect } from 'chai';
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SqliteDatabase } from '../../daemon/store/sql/sqlite-database.js';
import { canaryEncryptionKey } from '../support/canaries.js';
import { startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { type Provider, startProvider } from '../support/provider.js';
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
    const { exitCode, err } = await here(`restore ${file}`, other);
    expect(exitCode, err).to.equal(0);
    expect(err).to.include('There is no present database, so what was served since is unknown');
    await start(dir);
    expect(await calls(token.token, 1)).to.deep.equal([200]);
  });

  it('refuses what cannot be backed up or restored', async () => {
    await backUp();
    await daemon.stop();
    const text = join(daemon.dir, 'text');
    writeFileSync(text, 'not a database');
    const refusals: [string, RegExp, number, Record<string, string>?][] = [
      [`backup ${file}`, /exists already/, 4],
      [
        'backup x.db',
        /is on a server, and this command is for SQLite. Use pg_dump/,
        4,
        { DATABASE_URL: 'postgres://a@b/c', DB_DRIVER: 'postgres' },
      ],
      ['backup x.db', /does not exist. Check DATABASE_URL/, 4, { DATABASE_URL: join(daemon.dir, 'none.db') }],
      [`restore ${join(daemon.dir, 'none.db')}`, /does not exist/, 4],
      [`restore ${daemon.databasePath}`, /is the database itself/, 4],
      [`restore ${text}`, /not an llmp database/, 78],
    ];
    for (const [args, says, code, env] of refusals) {
      const { exitCode, err } = await here(args, env);
      expect(err).to.match(says);
      expect(exitCode, args).to.equal(code);
    }
    await start(daemon.dir);
  });
});
