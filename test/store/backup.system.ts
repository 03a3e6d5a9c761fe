/** Backup and restore with the commands of docs/operate/backup.md. */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { Sequelize } from 'sequelize';
import { SettingsError } from '../../config/settings.js';
import { MAIN } from '../cli/processes.js';
import { canaryEncryptionKey } from '../support/canaries.js';
import { startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { DatabaseServer, WITHOUT } from '../support/database-servers.js';
import { WITHOUT_MOUNT } from '../support/mounts.js';
import { type Provider, startProvider } from '../support/provider.js';

const PAGE = readFileSync(resolve(import.meta.dirname, '../../../docs/operate/backup.md'), 'utf8');

/** The commands in the code block after this mark. */
function commands(mark: string): string {
  const [, block] = new RegExp(`<!-- ${mark} -->\\n\\n\`\`\`sh\\n([^]*?)\`\`\``).exec(PAGE) ?? [];
  if (block === undefined) throw new Error(`no ${mark} in docs/operate/backup.md`);
  return block;
}

/** A folder with `llmp`. */
function programs(): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'llmp'), `#!/bin/sh\nexec "${process.execPath}" -- "${MAIN}" "$@"\n`, { mode: 0o755 });
  return folder;
}

function run(mark: string, cwd: string, env: Record<string, string> = {}): void {
  const { status, stderr } = spawnSync('bash', ['-euc', commands(mark)], {
    cwd,
    env: { PATH: `${programs()}:${process.env.PATH}`, ...env },
    encoding: 'utf8',
  });
  expect(status, stderr).to.equal(0);
}

describe('a backup', function () {
  this.timeout(60_000);
  let provider: Provider;
  let root: string;
  let dir: string;
  let daemon: TestDaemon;

  before(async () => {
    provider = await startProvider();
  });
  beforeEach(() => {
    root = temporaryFolder();
    dir = join(root, 'data');
    mkdirSync(dir);
  });
  afterEach(() => daemon.stop());
  after(() => provider.stop());

  const start = async (env: Record<string, string> = {}) => {
    daemon = await startDaemon({ upstream: provider.url, dir, env });
  };
  /** Takes a backup while the daemon runs, and restores it later. */
  async function goesBack(kind: string, settings: Record<string, string>, env: Record<string, string>): Promise<void> {
    await start(settings);
    const project = await daemon.createProject();
    const before = await daemon.createToken(project.id);
    expect((await daemon.call(before.token)).status).to.equal(200);
    run(`backup of ${kind}`, root, env);
    await daemon.manage('DELETE', `/manage/tokens/${before.id}`);
    const since = await daemon.createToken(project.id);
    await daemon.stop();
    for (const file of ['audit.log', 'audit-use.log']) renameSync(join(dir, file), join(dir, `${file}.aside`));
    run(`restore of ${kind}`, root, env);
    await start(settings);
    expect((await daemon.call(before.token)).status, 'issued before').to.equal(200);
    expect((await daemon.call(since.token)).status, 'issued since').to.equal(401);
    expect((await daemon.manage('GET', '/ready')).body).to.include({ status: 'ready' });
    await daemon.stop();
  }
  const refusalOf = (env: Record<string, string> = {}) => start(env).catch((error: unknown) => error);

  it('of SQLite restores the data, and is useless without the key', async () => {
    await goesBack('sqlite', {}, {});
    rmSync(join(dir, 'llmp.db.key'));
    const refusal = await refusalOf();
    expect(refusal).to.be.instanceOf(SettingsError);
    expect(String(refusal)).to.match(/ENCRYPTION_KEY/);
  });

  it(`of PostgreSQL restores the data, and is useless without the key${WITHOUT.postgres}`, async function () {
    if (WITHOUT.postgres) this.skip();
    const server = await DatabaseServer.start('postgres');
    try {
      const url = await server.newDatabase();
      const settings = { DB_DRIVER: 'postgres', DATABASE_URL: url, ENCRYPTION_KEY: canaryEncryptionKey() };
      const { hostname, port, username, pathname } = new URL(url);
      const env = { PGHOST: hostname, PGPORT: port, PGUSER: username, PGDATABASE: pathname.slice(1) };
      await goesBack('postgres', settings, env);
      const refusal = await refusalOf({ ...settings, ENCRYPTION_KEY: canaryEncryptionKey() });
      expect(refusal).to.be.instanceOf(SettingsError);
      expect(String(refusal)).to.match(/ENCRYPTION_KEY/);
    } finally {
      await server.remove();
    }
  });

  it(`of MariaDB restores the data${WITHOUT.mysql}`, async function () {
    if (WITHOUT.mysql) this.skip();
    const server = await DatabaseServer.start('mysql');
    try {
      const admin = new Sequelize(await server.newDatabase(), { logging: false });
      await admin.query('CREATE DATABASE llmp');
      await admin.close();
      const url = `mysql://root@127.0.0.1:${server.port}/llmp`;
      writeFileSync(join(root, '.my.cnf'), `[client]\nhost=127.0.0.1\nport=${server.port}\nuser=root\n`);
      const settings = { DB_DRIVER: 'mysql', DATABASE_URL: url, ENCRYPTION_KEY: canaryEncryptionKey() };
      await goesBack('mysql', settings, { HOME: root });
    } finally {
      await server.remove();
    }
  });
});

describe(`a backup on a full disk${WITHOUT_MOUNT}`, function () {
  this.timeout(60_000);
  let daemon: TestDaemon;
  let disk: string;
  const env = () => ({ DATABASE_URL: daemon.databasePath });
  const llmp = (args: readonly string[], under: readonly string[] = []) => {
    const [program = '', ...rest] = [...under, process.execPath, '--', MAIN, ...args];
    const { status, stderr } = spawnSync(program, rest, {
      env: { PATH: process.env.PATH, ...env() },
      encoding: 'utf8',
    });
    return { status, stderr };
  };
  const sizeOf = (path: string) => statSync(path).size;

  before(function () {
    if (WITHOUT_MOUNT) this.skip();
  });
  beforeEach(async () => {
    daemon = await startDaemon({ upstream: 'http://127.0.0.1:9' });
    await daemon.createProject();
    await daemon.stop();
    disk = temporaryFolder();
  });
  afterEach(() => spawnSync('umount', ['-l', disk]));
  const mount = (bytes: number) => {
    expect(spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', disk]).status).to.equal(0);
  };

  it('is refused, or leaves nothing behind', () => {
    mount(65_536);
    const file = join(disk, 'backup.db');
    const refused = llmp(['backup', file]);
    expect(refused.stderr).to.match(
      /^llmp: the disk is full: .* has [\d.]+ kB left, and needs [\d.]+ kB\. Make room, or use another disk\n$/,
    );
    expect(refused.status).to.equal(69);
    spawnSync('umount', [disk]);
    // Enough for the copy alone, and not for what SQLite writes with it.
    mount(sizeOf(daemon.databasePath));
    const failed = llmp(['backup', file]);
    expect(failed.stderr).to.match(/^llmp: the disk is full: .*backup.db.partial: database or disk is full\n$/);
    expect(failed.status).to.equal(69);
    const limited = llmp(['backup', `${daemon.databasePath}.backup`], ['prlimit', '--fsize=100000']);
    expect(limited.stderr).to.match(/^llmp: reading or writing failed: .*.backup.partial: disk I\/O error\n$/);
    expect(limited.status).to.equal(69);
    expect([readdirSync(disk), readdirSync(daemon.dir).filter((name) => name.includes('backup'))]).to.deep.equal([
      [],
      [],
    ]);
  });

  it('cannot be restored there, and the present database stays', () => {
    const file = join(temporaryFolder(), 'backup.db');
    expect(llmp(['backup', file]).status).to.equal(0);
    mount(2 * sizeOf(file));
    const path = join(disk, 'llmp.db');
    for (const end of ['', '.key']) copyFileSync(daemon.databasePath + end, path + end);
    const present = () => ({ files: readdirSync(disk).sort(), bytes: readFileSync(path).toString('base64') });
    expect(llmp(['restore', '-n', file]).status).to.equal(0);
    daemon.databasePath = path;
    const before = present();
    const refused = llmp(['restore', '--yes', file]);
    expect(refused.stderr).to.match(/\nllmp: the disk is full: .* Make room, or use another disk\n$/);
    expect(refused.status).to.equal(69);
    const limited = llmp(['restore', '--yes', file], ['prlimit', '--fsize=100000']);
    expect(limited.status).to.equal(69);
    expect(present()).to.deep.equal({ ...before, files: [...before.files, 'llmp.db.lock'].sort() });
  });
});
