import { expect } from 'chai';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { canary } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { freePort } from '../support/ports.js';
import { Terminal, WITHOUT_TMUX } from '../support/tmux.js';
import { type StandIn, startStandIn } from './stand-in.js';

const MAIN = fileURLToPath(new URL('../../cli/main.js', import.meta.url));

describe(`llmp init, at a terminal${WITHOUT_TMUX}`, () => {
  let dir: string;
  let upstream: StandIn;
  let terminal: Terminal | null = null;

  before(function () {
    if (WITHOUT_TMUX) this.skip();
  });
  beforeEach(async () => {
    dir = join(temporaryFolder(), 'llmp');
    upstream = await startStandIn();
  });
  afterEach(async () => {
    await terminal?.close();
    terminal = null;
    await upstream.stop();
  });

  async function opened(...more: string[]): Promise<Terminal> {
    const argv = [process.execPath, MAIN, 'init', '--dir', dir, '--no-systemd', ...more];
    return (terminal = await Terminal.open(argv, { env: { SYSTEMD_UNIT_PATH: dir }, cwd: temporaryFolder() }));
  }

  /** Accepts the proposed answer, or replaces it by `text`. */
  async function answer(it: Terminal, question: string, text?: string): Promise<void> {
    await it.shows(question);
    if (text !== undefined) await it.type(text);
    await it.press('Enter');
  }

  it('asks, shows the plan, writes the files, and prints the next commands', async () => {
    const it = await opened();
    const port = await freePort();
    await answer(it, 'Management token:');
    await answer(it, 'Listen on:', `127.0.0.1:${port}`);
    await answer(it, 'Database:');
    await answer(it, 'Database file:');
    await answer(it, 'Redis');
    await answer(it, 'Base URL of the provider:', upstream.url);
    const plan = await it.shows('Write these files?');
    expect(plan).to.contain(`LISTEN_ADDR=127.0.0.1:${port}`).and.to.contain('MANAGEMENT_TOKEN: a new, random value');
    expect(existsSync(dir), 'nothing is written before').to.equal(false);
    await it.press('Enter');
    expect(await it.exit()).to.equal(0);
    const end = await it.screen(true);
    expect(end).to.match(/● ok +upstream/);
    expect(end).to.match(/Next:\n.* daemon --env-file .*\n.*LLMP_SERVER=http.*\n.* token generate/);
    const token = readFileSync(join(dir, 'management-token'), 'utf8').trim();
    expect(token).to.match(/^[\w-]{32}$/);
    expect(end).not.to.contain(token);
    expect(readdirSync(dir).sort()).to.deep.equal(['llmp.env', 'management-token']);
    for (const name of readdirSync(dir)) expect(statSync(join(dir, name)).mode & 0o777).to.equal(0o600);
  });

  it('does not echo a password, and stores it in a separate file', async () => {
    const it = await opened('--set', `UPSTREAM_BASE_URL=${upstream.url}`, '--set', 'LISTEN_ADDR=127.0.0.1:0');
    const password = canary('password');
    await answer(it, 'Management token:');
    await it.shows('Database:');
    await it.press('Down', 'Enter');
    await answer(it, 'without the password', `postgres://llmp@127.0.0.1:${await freePort()}/llmp`);
    await it.shows('Database password');
    await it.typeSecret(password);
    await it.press('Enter');
    await answer(it, 'Redis');
    expect(await it.shows('Write these files?')).to.contain('ENCRYPTION_KEY: a new, random value');
    await it.press('Enter');
    expect(await it.exit(), 'no server listens there').to.equal(9);
    const end = await it.screen(true);
    expect(end).to.contain('ECONNREFUSED').and.not.to.contain(password);
    expect(readFileSync(join(dir, 'llmp.env'), 'utf8'))
      .to.contain('DB_DRIVER=postgres')
      .and.not.to.contain(password);
    expect(readFileSync(join(dir, 'database-url'), 'utf8')).to.contain(password);
  });

  it('asks again after an invalid answer', async () => {
    const it = await opened();
    await answer(it, 'Management token:');
    await answer(it, 'Listen on:', 'everywhere');
    await it.shows('It must be host:port');
    await it.press('C-c');
    expect(await it.exit()).to.equal(130);
  });

  it('writes nothing after ^C, or if the plan is declined', async () => {
    const it = await opened();
    await answer(it, 'Management token:');
    await it.shows('Listen on:');
    await it.press('C-c');
    expect(await it.exit()).to.equal(130);
    expect(existsSync(dir)).to.equal(false);
    await it.close();

    const set = {
      LISTEN_ADDR: '127.0.0.1:0',
      DATABASE_URL: 'x.db',
      UPSTREAM_BASE_URL: upstream.url,
      REDIS_ADDR: 'redis:1',
    };
    const again = await opened(...Object.entries(set).flatMap(([name, value]) => ['--set', `${name}=${value}`]));
    await answer(again, 'Management token:');
    await answer(again, 'Write these files?', 'n');
    expect(await again.exit()).to.equal(2);
    expect(existsSync(dir)).to.equal(false);
  });

  it('proposes existing values when it is run again, and changes nothing', async () => {
    const set = ['--set', `UPSTREAM_BASE_URL=${upstream.url}`, '--set', 'LISTEN_ADDR=127.0.0.1:0'];
    const first = await opened(...set, '--non-interactive');
    expect(await first.exit()).to.equal(0);
    await first.close();
    const it = await opened();
    await answer(it, 'Listen on: (127.0.0.1:0)');
    await answer(it, 'Database:');
    await answer(it, 'Database file:');
    await answer(it, 'Redis');
    await answer(it, 'Base URL of the provider:');
    expect(await it.exit()).to.equal(0);
    expect(await it.screen(true)).to.contain('Nothing to do: all files are up to date.');
  });

  it('prompts on standard error, so that standard output contains only data', async () => {
    const file = join(temporaryFolder(), 'stdout');
    const argv = [process.execPath, MAIN, 'init', '--dir', dir, '--no-systemd', '-n'];
    const line = `${argv.map((each) => `'${each}'`).join(' ')} > '${file}'`;
    const it = (terminal = await Terminal.open(['sh', '-c', line], { cwd: temporaryFolder() }));
    for (const question of [
      'Management token:',
      'Listen on:',
      'Database:',
      'Database file:',
      'Redis',
      'Base URL of the provider',
    ]) {
      await answer(it, question);
    }
    expect(await it.exit()).to.equal(0);
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    expect(lines.map((each) => each.split('\t')[0])).to.deep.equal(lines.map(() => 'create'));
    expect(existsSync(dir)).to.equal(false);
  });
});
