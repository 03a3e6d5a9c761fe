/** The two commands of the README for a fresh clone, typed there. `.ci/run` types the second in full. */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';

const ROOT = resolve(import.meta.dirname, '../../..');
/** How long npm may take, for each of several installations. */
const INSTALLED_MS = 300_000;

const listed = spawnSync('git', ['-C', ROOT, 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
  encoding: 'utf8',
  maxBuffer: 16 << 20,
});
const WITHOUT_GIT = process.env.CI !== 'true' && listed.status !== 0 ? ' (skipped: this is no clone)' : '';

/** The command of the README below this marker. */
function commandAt(marker: string): string {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  return new RegExp(`^<!-- ${marker} -->\\n\\n\`\`\`sh\\n(.*)\\n\`\`\`$`, 'm').exec(readme)?.[1] ?? '';
}

describe(`the README's commands for a fresh clone${WITHOUT_GIT}`, function () {
  this.timeout(2 * INSTALLED_MS);
  // Hundreds of megabytes that need no scan for secrets.
  let folder: string;
  let clone: string;
  let tmp: string;
  let env: NodeJS.ProcessEnv;
  let shell: ChildProcess | undefined;

  before(function () {
    if (WITHOUT_GIT) this.skip();
    folder = mkdtempSync(join(tmpdir(), 'llmp-clone-'));
    clone = join(folder, 'llmp');
    for (const path of listed.stdout.split('\0').filter((name) => name !== '' && existsSync(join(ROOT, name)))) {
      cpSync(join(ROOT, path), join(clone, path));
    }
    // As of a user at a terminal: without what npm and the tests have set for this process.
    const isForeign = /^(?:npm_(?!config_)|npm_config_loglevel$|INIT_CWD$|CI$|MOCHA_OPTIONS$|FAILED_TESTS$)/;
    tmp = join(folder, 'tmp');
    mkdirSync(tmp);
    env = {
      ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !isForeign.test(name))),
      TMPDIR: tmp,
      // What this clone has downloaded and compiled is not fetched and compiled again.
      npm_config_prefer_offline: 'true',
      npm_config_sqlite3_local_prebuilds: packed(),
    };
  });

  after(() => {
    if (shell?.pid !== undefined && shell.exitCode === null && shell.signalCode === null)
      process.kill(-shell.pid, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  /** Packs the native module as the authors of sqlite3 publish it. @returns the folder. */
  function packed(): string {
    const prebuilds = join(folder, 'prebuilds');
    mkdirSync(prebuilds);
    const sqlite3 = join(ROOT, 'node_modules/sqlite3');
    const { version } = JSON.parse(readFileSync(join(sqlite3, 'package.json'), 'utf8')) as { version: string };
    for (const napi of [3, 6]) {
      const archive = `sqlite3-v${version}-napi-v${napi}-${process.platform}-${process.arch}.tar.gz`;
      const { status } = spawnSync('tar', [
        '-C',
        sqlite3,
        '-czf',
        join(prebuilds, archive),
        'build/Release/node_sqlite3.node',
      ]);
      expect(status).to.equal(0);
    }
    return prebuilds;
  }

  /** Types a command. @returns what it has printed so far. */
  function typed(command: string, more: NodeJS.ProcessEnv = {}): { out: string; ended: Promise<number | null> } {
    const child = spawn('bash', ['-c', command], {
      ...{ cwd: clone, env: { ...env, ...more }, detached: true, stdio: ['ignore', 'pipe', 'pipe'] },
    });
    shell = child;
    const printed = { out: '', ended: once(child, 'close').then(([code]) => code as number | null) };
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (printed.out += text));
    }
    return printed;
  }

  it('shows a request with a token, prints one that works, and leaves nothing behind', async () => {
    const command = commandAt('runs: fresh-clone');
    expect(command).to.equal('npm ci && npm run demo');
    const demo = typed(command);
    const isReady = () => demo.out.includes('Requests are listed here') || shell!.exitCode !== null;
    await eventually('the demo is ready', isReady, INSTALLED_MS).catch(() => {
      throw new Error(demo.out);
    });
    expect(demo.out, 'what npm spends its time on').to.match(/^> sqlite3@\S+ install$/m);
    expect(demo.out).to.include('The reply:\nYou said "Hello".');
    const [variables = ''] = /^\. .*$/m.exec(demo.out) ?? [];
    const [curl = ''] = /^curl (?:.*\\\n)*.*$/m.exec(demo.out) ?? [];
    const { stdout } = await promisify(execFile)('bash', ['-c', `${variables}\n${curl}`]);
    expect(stdout).to.include('"choices"');
    // As ^C at a terminal does: npm and the demo get it.
    process.kill(-shell!.pid!, 'SIGINT');
    await demo.ended;
    expect(demo.out).to.include('All data of the demo was removed');
    expect(readdirSync(tmp).filter((name) => name.startsWith('llmp-'))).to.deep.equal([]);
  });

  it('runs tests', async () => {
    const command = commandAt('test command');
    expect(command).to.equal('npm ci && npm test');
    // Of the quick tests, all files are loaded, and one suite runs.
    const test = typed(command, { MOCHA_OPTIONS: '--fgrep "does not fail: a suite for Redis"' });
    const ended = await test.ended;
    expect(test.out, test.out).to.match(/^ +[1-9]\d* passing /m);
    expect(ended, test.out).to.equal(0);
  });
});
