import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readEnvFile } from '../../config/sources.js';
import { canary } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { freePort } from '../support/ports.js';
import { spawnDaemon } from '../support/process.js';
import { type Captured, llmp } from './captured.js';
import { type StandIn, startStandIn } from './stand-in.js';

const MAIN = fileURLToPath(new URL('../../cli/main.js', import.meta.url));

/** The reason for a skipped test, for its title. In CI the test fails instead. */
const WITHOUT_SYSTEMD =
  process.env.CI !== 'true' && spawnSync('systemd-analyze', ['--version']).error ? ' (skipped: no systemd here)' : '';

interface Report {
  env_file: string;
  planned: { action: string; path: string; what: string }[];
  ok: boolean;
  checks: { check: string; state: string }[];
  next: string[];
}

describe('llmp init --non-interactive', () => {
  let dir: string;
  let upstream: StandIn;
  let umask: number;

  beforeEach(async () => {
    umask = process.umask(0o077); // As the process has it.
    dir = join(temporaryFolder(), 'llmp');
    upstream = await startStandIn();
  });
  afterEach(async () => {
    process.umask(umask);
    await upstream.stop();
  });

  const NEVER = new Promise<void>(() => undefined);

  /** Runs init in `dir`. `good()` adds a reachable upstream and a free port. */
  const init = (...args: string[]): Promise<Captured> =>
    llmp(['init', '--non-interactive', '--dir', dir, ...args], { interrupted: NEVER, env: { SYSTEMD_UNIT_PATH: dir } });
  const good = () => ['--no-systemd', '--set', `UPSTREAM_BASE_URL=${upstream.url}`, '--set', 'LISTEN_ADDR=127.0.0.1:0'];
  const file = (name: string) => readFileSync(join(dir, name), 'utf8');
  const modeOf = (name: string) => statSync(join(dir, name)).mode & 0o777;

  it('writes files with which a daemon starts, for their owner only', async () => {
    const { exitCode, err } = await init(...good());
    expect(exitCode, err).to.equal(0);
    expect(readdirSync(dir).sort()).to.deep.equal(['llmp.env', 'management-token']);
    expect([modeOf('.'), modeOf('llmp.env'), modeOf('management-token')]).to.deep.equal([0o700, 0o600, 0o600]);
    const daemon = await spawnDaemon({}, '--env-file', join(dir, 'llmp.env'));
    const asked = await fetch(`${daemon.url}/manage/projects`, {
      headers: { authorization: `Bearer ${file('management-token').trim()}` },
    });
    expect(asked.status).to.equal(200);
    await daemon.kill();
    expect(readdirSync(dir)).to.include.members(['llmp.db', 'llmp.db.key']);
  });

  it('ends with the findings of doctor and three next commands', async () => {
    const { out, err } = await init(...good(), '-o', 'json');
    const report = JSON.parse(out) as Report;
    expect(report.ok).to.equal(true);
    expect(report.checks.map(({ check }) => check)).to.include.members(['settings', 'upstream', 'database']);
    expect(report.next).to.have.lengthOf(3);
    expect(report.next[0]).to.equal(`llmp daemon --env-file ${join(dir, 'llmp.env')}`);
    expect(report.next[1]).to.match(/^export MANAGEMENT_TOKEN_FILE=.*management-token.*; llmp project create/);
    expect(err).not.to.contain(file('management-token').trim());
    expect(out).not.to.contain(file('management-token').trim());
  });

  it('exits with 9 and the reason if a daemon cannot run with the written setup', async () => {
    const port = await freePort();
    const { exitCode, out } = await init('--no-systemd', '--set', `UPSTREAM_BASE_URL=http://127.0.0.1:${port}`);
    expect(exitCode).to.equal(9);
    expect(out).to.match(/^upstream\tfailed\t.*ECONNREFUSED/m);
  });

  it('warns that the name of the provider does not resolve, which can be a matter of the network', async () => {
    const set = ['--set', 'UPSTREAM_BASE_URL=https://nowhere.invalid', '--set', 'LISTEN_ADDR=127.0.0.1:0'];
    const { exitCode, out } = await init('--no-systemd', ...set);
    expect(exitCode).to.equal(0);
    expect(out).to.match(
      /^upstream\twarning\tcannot resolve nowhere\.invalid: \w+; requests get 502 .*llmp doctor --env-file \S+$/m,
    );
  });

  it('with -n shows the plan, and writes nothing', async () => {
    const { exitCode, out, err } = await init(...good(), '-n');
    expect(exitCode).to.equal(0);
    expect(out).to.contain(`create\t${join(dir, 'llmp.env')}\tLISTEN_ADDR=127.0.0.1:0\n`);
    expect(err).to.equal('Nothing was written.\n');
    expect(() => readdirSync(dir)).to.throw('ENOENT');
  });

  it('completes all files when ^C is pressed while it writes', async () => {
    const pressed = { interrupted: Promise.resolve(), env: {} };
    const { exitCode } = await llmp(['init', '--non-interactive', '--dir', dir, ...good()], pressed);
    expect(exitCode).to.equal(130);
    expect(readdirSync(dir).sort()).to.deep.equal(['llmp.env', 'management-token']);
    expect(file('llmp.env')).to.match(/\nAUDIT_LOG_FILE=.*\n$/);
  });

  it('leaves no partial file when the disk is full', async () => {
    await init(...good());
    const before = file('llmp.env');
    rmSync(join(dir, 'management-token'));
    writeFileSync(join(dir, 'llmp.env'), before.replace(/^MANAGEMENT_TOKEN_FILE.*\n/m, ''));
    const full = spawnSync(
      'sh',
      [
        '-c',
        'ulimit -f 0; trap "" XFSZ; exec "$@"',
        'sh',
        process.execPath,
        MAIN,
        'init',
        '--non-interactive',
        '--dir',
        dir,
        ...good(),
      ],
      { encoding: 'utf8' },
    );
    expect(full.status, full.stderr).to.equal(1);
    expect(full.stderr).to.match(/cannot write in .*\n.*EFBIG/);
    expect(readdirSync(dir)).to.deep.equal(['llmp.env']);
  });

  describe('run again', () => {
    it('changes nothing, including secrets', async () => {
      await init(...good());
      const before = [file('llmp.env'), file('management-token')];
      const { exitCode, err } = await init('--no-systemd');
      expect(exitCode).to.equal(0);
      expect(err).to.match(/^Nothing to do/);
      expect([file('llmp.env'), file('management-token')]).to.deep.equal(before);
    });

    it('changes the given settings in place, and no other lines', async () => {
      await init(...good());
      appendFileSync(join(dir, 'llmp.env'), "\n# mine\nexport LOG_LEVEL='debug'  \n#LOG_FORMAT=text\n");
      const before = file('llmp.env');
      const token = file('management-token');
      const { exitCode } = await init('--no-systemd', '--set', 'LISTEN_ADDR=127.0.0.1:0', '--set', 'LOG_FORMAT=json');
      expect(exitCode).to.equal(0);
      expect(file('llmp.env')).to.equal(`${before}LOG_FORMAT=json\n`);
      await init('--no-systemd', '--set', 'LOG_LEVEL=warn');
      expect(file('llmp.env')).to.equal(
        `${before.replace("export LOG_LEVEL='debug'  ", 'LOG_LEVEL=warn')}LOG_FORMAT=json\n`,
      );
      expect(file('management-token')).to.equal(token);
    });

    it('replaces a setting by its file, and restricts a file that others can read', async () => {
      await init(...good(), '--set', 'REDIS_USERNAME=llmp');
      const name = join(temporaryFolder(), 'name');
      writeFileSync(name, 'other\n');
      chmodSync(join(dir, 'management-token'), 0o644);
      const { err } = await init('--no-systemd', '--set', `REDIS_USERNAME_FILE=${name}`);
      expect(err).to.contain('remove REDIS_USERNAME').and.to.contain('mode 0644 becomes 0600');
      expect(readEnvFile(join(dir, 'llmp.env')).values).to.include({ REDIS_USERNAME_FILE: name });
      expect(file('llmp.env')).not.to.match(/^REDIS_USERNAME=/m);
      expect(modeOf('management-token')).to.equal(0o600);
    });

    it('continues after it was killed between two files', async () => {
      mkdirSync(dir);
      const token = canary('management');
      writeFileSync(join(dir, 'management-token'), `${token}\n`, { mode: 0o600 });
      const { exitCode, err } = await init(...good());
      expect(exitCode).to.equal(0);
      expect(err).to.contain('MANAGEMENT_TOKEN: the existing value');
      expect(file('management-token').trim()).to.equal(token);
    });
  });

  describe('refuses', () => {
    it('a secret on the command line, and does not repeat it', async () => {
      const token = canary('management');
      const password = canary('password');
      const url = `DATABASE_URL=postgres://llmp:${password}@127.0.0.1/llmp`;
      for (const [set, name] of [
        [`MANAGEMENT_TOKEN=${token}`, 'MANAGEMENT_TOKEN'],
        [url, 'DATABASE_URL'],
      ] as const) {
        const { exitCode, err } = await init('--no-systemd', '--set', set);
        expect(exitCode).to.equal(2);
        expect(err).to.contain(`--set ${name}_FILE=FILE`).and.not.to.contain(token).and.not.to.contain(password);
      }
    });

    it('an unknown setting, an invalid value, or a combination with which no daemon starts', async () => {
      for (const [set, why] of [
        ['LISTEN_ADR=:80', 'unknown setting'],
        ['LISTEN_ADDR=everywhere', 'must be host:port'],
        ['listen', 'NAME=value'],
        ['LLM_PROXY_EVENT_BUS=redis-streams', 'requires REDIS_ADDR'],
        ['MANAGEMENT_TOKEN_FILE=/nowhere/token', 'cannot read /nowhere/token'],
      ] as const) {
        const { exitCode, err } = await init('--no-systemd', '--set', set);
        expect({ exitCode, err }, set).to.have.property('exitCode', 2);
        expect(err).to.contain(why);
      }
      expect(() => readdirSync(dir), 'nothing is written').to.throw('ENOENT');
    });

    it('existing files that it did not write', async () => {
      const refused = async (prepare: () => void, ...args: string[]) => {
        dir = join(temporaryFolder(), 'llmp');
        mkdirSync(dir);
        prepare();
        const before = readdirSync(dir).map((name) => [name, statSync(join(dir, name)).mtimeMs]);
        const { exitCode, err } = await init(...good().slice(args.length), ...args);
        expect(exitCode, err).to.equal(5);
        expect(err).to.contain('cannot use');
        expect(readdirSync(dir).map((name) => [name, statSync(join(dir, name)).mtimeMs])).to.deep.equal(before);
      };
      await refused(() => {
        writeFileSync(join(dir, 'llmp.env'), 'a shopping list\n');
      });
      await refused(() => {
        mkdirSync(join(dir, 'llmp.env'));
      });
      await refused(() => {
        symlinkSync('/etc/hostname', join(dir, 'management-token'));
      });
      await refused(() => {
        writeFileSync(join(dir, 'management-token'), 'no token, but words\n');
      });
      await refused(() => {
        chmodSync(dir, 0o777);
      });
    });

    it('to ask without a terminal, and asks nothing with --no-input', async () => {
      const silent = await llmp(['init', '--no-input', '-n', '--no-systemd', '--dir', dir], { env: {} });
      expect(silent.exitCode, silent.err).to.equal(0);
      const { exitCode, err } = await llmp(['init', '--dir', dir]);
      expect(exitCode).to.equal(2);
      expect(err).to.contain('--non-interactive');
    });
  });

  describe('for a database on a server', () => {
    it('sets the driver, and generates an encryption key once', async () => {
      const url = join(temporaryFolder(), 'database-url');
      writeFileSync(url, `postgres://llmp:${canary('password')}@127.0.0.1:${await freePort()}/llmp`, { mode: 0o600 });
      const args = [...good(), '--set', `DATABASE_URL_FILE=${url}`];
      const { exitCode, err } = await init(...args);
      expect(exitCode, 'no server is there').to.equal(9);
      expect(err).to.contain('DB_DRIVER=postgres').and.to.contain('ENCRYPTION_KEY: a new, random value');
      const key = file('encryption-key');
      expect(Buffer.from(key, 'base64')).to.have.lengthOf(32);
      expect(modeOf('encryption-key')).to.equal(0o600);
      expect((await init(...args)).err).to.match(/^llmp: warning: REDIS_ADDR.*\nNothing to do/);
      expect(file('encryption-key')).to.equal(key);
    });
  });

  describe('with a systemd unit', () => {
    const set = () => ['--set', `UPSTREAM_BASE_URL=${upstream.url}`, '--set', 'LISTEN_ADDR=127.0.0.1:0', '-q'];

    it('stores data where the unit can write, and passes secrets as credentials', async () => {
      await init(...set());
      const unit = file('llmp.service');
      expect(unit).to.contain(`LoadCredential=management-token:${join(dir, 'management-token')}\n`);
      expect(unit).to.contain('Environment=MANAGEMENT_TOKEN_FILE=%d/management-token\n');
      expect(unit).to.match(/^ExecStart=\/.* daemon --env-file %d\/llmp\.env$/m);
      expect(file('llmp.env')).to.contain('DATABASE_URL=sqlite:/var/lib/llmp/llmp.db\n');
    });

    it(`is valid for systemd itself${WITHOUT_SYSTEMD}`, async function () {
      if (WITHOUT_SYSTEMD) this.skip();
      await init(...set());
      const unit = join(dir, 'llmp.service');
      const verified = spawnSync('systemd-analyze', ['verify', '--man=no', unit], { encoding: 'utf8' });
      expect({ status: verified.status, stderr: verified.stderr }).to.deep.equal({ status: 0, stderr: '' });
    });

    it('updates it when a setting requires that, unless it was edited by hand', async () => {
      await init(...set());
      await init('--set', 'LISTEN_ADDR=127.0.0.1:443', '-q');
      expect(file('llmp.service')).to.contain('AmbientCapabilities=CAP_NET_BIND_SERVICE\n');
      appendFileSync(join(dir, 'llmp.service'), '# mine\n');
      const { err } = await init('--set', 'LISTEN_ADDR=127.0.0.1:0');
      expect(err).to.contain('was edited by hand and is not changed');
      expect(file('llmp.service')).to.contain('# mine').and.to.contain('CAP_NET_BIND_SERVICE');
    });

    it('refuses a unit that it did not write, and a database that the unit cannot write', async () => {
      mkdirSync(dir);
      writeFileSync(join(dir, 'llmp.service'), '[Service]\n');
      const foreign = await init(...set());
      expect(foreign.exitCode).to.equal(5);
      expect(foreign.err).to.contain('--no-systemd');
      expect(readdirSync(dir)).to.deep.equal(['llmp.service']);
      const outside = await init(...set(), '--set', `DATABASE_URL=${dir}/llmp.db`);
      expect(outside.exitCode).to.equal(2);
      expect(outside.err).to.contain('sqlite:/var/lib/llmp/llmp.db');
    });
  });
});
