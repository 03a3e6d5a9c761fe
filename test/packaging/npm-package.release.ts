/** Installs the npm package with each supported release of npm, in an empty prefix and home, and uses what it installed. */
import { expect } from 'chai';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { readPackageName } from '../../config/version.js';
import { platformName } from '../../daemon/store/sqlite-native.js';
import { TARGETS } from '../../packaging/targets.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/ports.js';
import { released } from './released.js';

const MAX_MB = 64;
const MAX_PACKED_BYTES = 2_350_000;
const NETWORK_ERROR = /ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNRE|ENETUNREACH|network/;

/** npm 12 needs a newer Node.js than llmp does. */
const NPM = { 10: ['npm@10'], 11: ['npm@11'], 12: ['node@22', 'npm@12'] };

interface Installation {
  home: string;
  prefix: string;
  /** What npm printed. */
  said: string;
}

describe('the npm package', function () {
  this.timeout(600_000);
  let work: string;
  let tarball: string;

  before(() => {
    work = mkdtempSync(join(tmpdir(), 'llmp-npm-'));
    tarball = released('.tgz');
  });

  after(() => {
    rmSync(work, { recursive: true, force: true });
  });

  /** Nothing of this machine but the programs and the certificate authorities that it needs: no settings of npm, no cache. */
  const environment = (home: string) => ({
    PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
    HOME: home,
    ...(process.env.NODE_EXTRA_CA_CERTS && { NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS }),
  });

  function install(this: Mocha.Context, name: string, npm: readonly string[], ...options: string[]): Installation {
    const home = join(work, name, 'home');
    const prefix = join(work, name, 'prefix');
    for (const folder of [home, prefix]) mkdirSync(folder, { recursive: true });
    const packages = npm.flatMap((each) => ['-p', each]);
    const began = performance.now();
    const { status, stdout, stderr } = spawnSync(
      'npx',
      ['--yes', ...packages, '--', 'npm', 'install', '--global', '--prefix', prefix, ...options, tarball],
      { cwd: home, env: environment(home), encoding: 'utf8' },
    );
    if (status !== 0 && NETWORK_ERROR.test(stderr)) {
      console.log(`      NOT CHECKED: ${npm.join(' and ')}, the registry does not answer`);
      this.skip();
    }
    expect(status, stderr).to.equal(0);
    console.log(`      ${Math.round((performance.now() - began) / 1000)} s, with the time that it takes to get npm`);
    return { home, prefix, said: stdout + stderr };
  }

  function run({ home, prefix }: Installation, ...args: string[]): string {
    const { status, stdout, stderr } = spawnSync(join(prefix, 'bin/llmp'), args, {
      cwd: home,
      env: environment(home),
      encoding: 'utf8',
    });
    expect(status, stderr).to.equal(0);
    return stdout;
  }

  /** Starts `llmp daemon` or `llmp demo`, waits until it prints what matches, and ends it with ^C after `use`. */
  async function whileRuns(
    { home, prefix }: Installation,
    args: readonly string[],
    settings: Record<string, string>,
    ready: RegExp,
    use: (out: string) => Promise<void>,
  ): Promise<void> {
    const child = spawn(join(prefix, 'bin/llmp'), args, {
      cwd: home,
      env: { ...environment(home), ...settings },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = once(child, 'close') as Promise<[number | null]>;
    let out = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (out += text.toString()));
    try {
      await eventually(`${args.join(' ')} is ready`, () => ready.test(out), 300_000).catch((error: unknown) => {
        throw new Error(out, { cause: error });
      });
      await use(out);
      child.kill('SIGINT');
      expect((await ended)[0], out).to.be.oneOf([0, 130]);
    } finally {
      child.kill('SIGKILL');
    }
  }

  it('is not larger than it needs to be', () => {
    const { stdout } = spawnSync('tar', ['-tvzf', tarball], { encoding: 'utf8' });
    for (const { arch } of TARGETS) expect(stdout).to.include(`package/dist/native/linux-${arch}/node_sqlite3.node`);
    expect(stdout).not.to.match(/package\/(?:test|dist\/test|dist\/packaging)\/|\.map$/m);
    const others = spawnSync(
      'bash',
      ['-c', `mkdir others && tar -C others --exclude '*.node' -xzf "$0" && tar -cz others | wc -c`, tarball],
      { cwd: work, encoding: 'utf8' },
    );
    expect(Number(others.stdout), 'bytes without native modules').to.be.within(500_000, MAX_PACKED_BYTES);
  });

  for (const [version, npm] of Object.entries(NPM)) {
    for (const options of [[], ['--ignore-scripts']]) {
      it(`is installed by npm ${version} ${options.join(' ')}`.trim(), async function () {
        const installed = install.call(this, `npm-${version}${options.join('')}`, npm, ...options);
        expect(installed.said)
          .to.include('added ')
          .and.not.to.match(/scripts|deprecated|EBADENGINE.*llmp/);
        expect(run(installed, 'version', '-v'))
          .to.match(/^commit +[0-9a-f]{40}(?:-dirty)?$/m)
          .and.match(/^SQLite +3\./m);
        if (options.length === 0) return;
        await whileRuns(installed, ['demo', '--json'], {}, /\}\s*$/, async (out) => {
          const { server, token } = JSON.parse(out.slice(0, out.lastIndexOf('}') + 1)) as Record<string, string>;
          const { status } = await fetch(`${server}/v1/models`, { headers: { authorization: `Bearer ${token}` } });
          expect(status).to.equal(200);
        });
      });
    }
  }

  describe('once installed', () => {
    let installed: Installation;
    before(function () {
      installed = install.call(this, 'used', NPM[11], '--ignore-scripts');
    });

    it(`takes at most ${MAX_MB} MB, and needs no other folder`, () => {
      const { stdout } = spawnSync('du', ['-sm', installed.prefix], { encoding: 'utf8' });
      console.log(`      ${stdout.split('\t')[0] ?? ''} MB`);
      expect(parseInt(stdout, 10)).to.be.within(5, MAX_MB);
    });

    it('has manual pages and completion', () => {
      expect(readdirSync(join(installed.prefix, 'share/man/man1'))).to.include('llmp-token.1');
      expect(readdirSync(join(installed.prefix, 'share/man/man8'))).to.include('llmp-daemon.8');
      expect(run(installed, 'man', 'token')).to.match(/llmp token/);
      for (const shell of ['bash', 'zsh', 'fish']) expect(run(installed, 'completion', shell)).to.include('__complete');
    });

    it('runs a daemon on SQLite', async () => {
      const port = await freePort();
      const settings = { MANAGEMENT_TOKEN: 'm'.repeat(40), LISTEN_ADDR: `127.0.0.1:${port}` };
      await whileRuns(installed, ['daemon'], settings, /listening/, async () => {
        const { status } = await fetch(`http://127.0.0.1:${port}/ready`);
        expect(status).to.equal(200);
      });
      expect(readdirSync(join(installed.home, 'data'))).to.include('llmp.db');
    });

    it('renders the terminal UI and evaluates --jq', () => {
      expect(run(installed, 'tui', '--print-keys')).not.to.equal('');
      expect(run(installed, 'version', '--jq', '.node')).to.equal(`${process.version}\n`);
    });

    it('says in one sentence that SQLite is missing, and works without it where it can', async () => {
      const native = join(installed.prefix, 'lib/node_modules', readPackageName(), 'dist/native');
      renameSync(native, `${native}.away`);
      try {
        const { status, stderr } = spawnSync(join(installed.prefix, 'bin/llmp'), ['demo'], {
          env: environment(installed.home),
          encoding: 'utf8',
        });
        expect({ status, stderr }).to.deep.equal({
          status: 78,
          stderr: `llmp: DATABASE_URL: SQLite cannot be used: this installation has no native module for ${platformName()}. Use PostgreSQL or MySQL (DATABASE_URL), or build llmp on this machine\n`,
        });
        expect(run(installed, 'version')).to.match(/^llmp \d/);
        const postgres = { DB_DRIVER: 'postgres', DATABASE_URL: 'postgres://127.0.0.1:1/llmp' };
        const settings = { ...postgres, MANAGEMENT_TOKEN: 'm'.repeat(40), ENCRYPTION_KEY: 'k'.repeat(43) + '=' };
        const listening = { LISTEN_ADDR: `127.0.0.1:${await freePort()}` };
        await whileRuns(installed, ['daemon'], { ...settings, ...listening }, /database unavailable|retrying/, () =>
          Promise.resolve(),
        );
      } finally {
        renameSync(`${native}.away`, native);
      }
    });
  });
});
