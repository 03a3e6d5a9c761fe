import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, linkSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { canary } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { COMMAND, type DaemonProcess, launchDaemon } from '../support/process.js';

const MANAGEMENT_TOKEN = canary('management');

describe('llmp daemon', function () {
  this.timeout(60_000);
  const processes: DaemonProcess[] = [];
  let dir: string;

  beforeEach(() => {
    dir = temporaryFolder();
  });
  afterEach(async () => {
    for (const started of processes.splice(0)) await started.kill();
  });

  function start(env: Record<string, string> = {}, ...options: string[]): DaemonProcess {
    const started = launchDaemon({ SHUTDOWN_DELAY: '0', ...env }, { options, cwd: dir });
    processes.push(started);
    return started;
  }

  async function run(env: Record<string, string>, ...options: string[]) {
    const { exit, printed } = start(env, ...options);
    return { code: await exit, ...printed };
  }

  it('H06 does not start without MANAGEMENT_TOKEN, and reports that it is required', async () => {
    for (const env of [{}, { MANAGEMENT_TOKEN: '' }, { MANAGEMENT_TOKEN: ' ' }] as Record<string, string>[]) {
      const { code, stdout, stderr } = await run(env);
      expect({ code, stdout }).to.deep.equal({ code: 78, stdout: '' });
      expect(stderr.split('\n')[0]).to.match(/(^|: )MANAGEMENT_TOKEN is required$/);
    }
    expect(readdirSync(dir)).to.deep.equal([]);
  });

  it('H05 M13 reports all problems, one per line, and exits with 78', async () => {
    const { code, stderr } = await run({ LISTEN_ADDR: 'x', REQUEST_TIMEOUT: '5', MANAGEMENT_TOKEN: 'padded ' });
    expect(code).to.equal(78);
    const names = stderr
      .trim()
      .split('\n')
      .map((line) => /[A-Z]+_[A-Z_]+/.exec(line)?.[0]);
    expect(names).to.deep.equal(['MANAGEMENT_TOKEN', 'LISTEN_ADDR', 'REQUEST_TIMEOUT']);
    expect(stderr).not.to.include('padded');
  });

  for (const [what, env, nodeOptions, name] of [
    ['certificates are not checked', { NODE_TLS_REJECT_UNAUTHORIZED: '0' }, [], 'NODE_TLS_REJECT_UNAUTHORIZED'],
    ['requests can be smuggled', { NODE_OPTIONS: '--insecure-http-parser' }, [], '--insecure-http-parser'],
    ['a debugger can read all secrets', {}, ['--inspect=127.0.0.1:0'], '--inspect'],
  ] as const) {
    it(`does not start if ${what}`, async () => {
      const started = launchDaemon({ MANAGEMENT_TOKEN, ...env }, { nodeOptions, cwd: dir });
      processes.push(started);
      expect(await started.exit).to.equal(78);
      expect(started.printed.stderr).to.match(new RegExp(`^llmp: ${name}`, 'm'));
      expect(readdirSync(dir)).to.deep.equal([]);
    });
  }

  it('I17 serves, writes files that only their owner can read, and exits with 0 on SIGTERM', async () => {
    const { child, exit, listening, printed } = start({
      MANAGEMENT_TOKEN: 'short',
      DATABASE_URL: 'new/folder/llmp.db',
    });
    const url = await listening;
    expect((await fetch(`${url}/ready`)).status).to.equal(200);
    expect(printed.stdout).to.include('MANAGEMENT_TOKEN is shorter than 16 characters').and.not.to.include('"short"');

    const folder = join(dir, 'new/folder');
    expect(statSync(folder).mode & 0o777).to.equal(0o700);
    const modes = Object.fromEntries(
      readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mode & 0o777]),
    );
    expect(modes).to.include({ 'llmp.db': 0o600, 'llmp.db-wal': 0o600, 'llmp.db.key': 0o600, 'llmp.db.lock': 0o600 });
    expect(new Set(Object.values(modes))).to.deep.equal(new Set([0o600]));

    child.kill('SIGTERM');
    expect(await exit).to.equal(0);
  });

  it('F19 M16 exits with 78 if another daemon uses the database, and does not disturb that daemon', async () => {
    const first = start({ MANAGEMENT_TOKEN });
    const url = await first.listening;
    const { code, stderr } = await run({ MANAGEMENT_TOKEN });
    expect(code).to.equal(78);
    expect(stderr).to.match(/DATABASE_URL: .* is in use by another llmp process/);
    expect((await fetch(`${url}/ready`)).status).to.equal(200);
  });

  it('F19 M16 refuses a database that another daemon uses under another name', async () => {
    await start({ MANAGEMENT_TOKEN }).listening;
    const [soft, hard] = [join(dir, 'soft.db'), join(dir, 'hard.db')];
    symlinkSync(join(dir, 'data/llmp.db'), soft);
    const refused = async (path: string) => {
      const { code, stderr } = await run({ MANAGEMENT_TOKEN, DATABASE_URL: path });
      expect(code, path).to.equal(78);
      expect(stderr).to.match(/DATABASE_URL: .* is in use by another llmp process/);
    };
    await refused(soft);
    // A new file has one name. From the next start on the file itself is locked.
    await processes[0]!.kill();
    await start({ MANAGEMENT_TOKEN }).listening;
    linkSync(join(dir, 'data/llmp.db'), hard);
    await refused(hard);
  });

  it('F19 M16 does not start if it cannot lock its database', async function () {
    const isRoot = process.getuid?.() === 0;
    // As a user without root privileges.
    const under = isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : [];
    const reading = [process.execPath, '-e', `fs.accessSync(${JSON.stringify(COMMAND)})`];
    if (spawnSync('env', [...under, ...reading]).status !== 0) this.skip(); // That user cannot read the program.
    const data = join(dir, 'data');
    mkdirSync(data);
    writeFileSync(join(data, 'llmp.db.lock'), '', { mode: 0o444 });
    for (const folder of [dir, data]) chmodSync(folder, 0o777);
    const started = launchDaemon({ MANAGEMENT_TOKEN }, { cwd: dir, under });
    processes.push(started);
    expect(await Promise.race([started.exit, started.listening.catch(() => started.exit)])).to.equal(77);
    expect(started.printed.stderr).to.match(/cannot open the database .*llmp\.db\.lock/);
  });

  it('F19 M16 takes over the database of a daemon that was killed', async () => {
    const first = start({ MANAGEMENT_TOKEN });
    await first.listening;
    await first.kill();
    expect((await fetch(`${await start({ MANAGEMENT_TOKEN }).listening}/ready`)).status).to.equal(200);
  });

  describe('with an address that is in use', () => {
    const taken = createServer();
    let address: string;

    before(async () => {
      await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
      address = `127.0.0.1:${(taken.address() as AddressInfo).port}`;
    });
    after(() => taken.close());

    it('M12 exits with 69 and reports it in one line', async () => {
      const { code, stderr } = await run({ MANAGEMENT_TOKEN, LISTEN_ADDR: address });
      expect(code).to.equal(69);
      expect(stderr).to.match(/^llmp: .*EADDRINUSE.*\n$/);
    });

    it('--check still exits with 0: it connects to nothing, and creates nothing', async () => {
      const { code, stdout, stderr } = await run({ MANAGEMENT_TOKEN, LISTEN_ADDR: address }, '--check');
      expect({ code, stdout }).to.deep.equal({ code: 0, stdout: '' });
      expect(stderr).to.include('the configuration is valid');
      expect(existsSync(join(dir, 'data'))).to.equal(false);
    });
  });

  it('--print-config prints the settings in force and their origin, with secrets masked, and creates nothing', async () => {
    const { code, stdout } = await run({ MANAGEMENT_TOKEN, LOG_LEVEL: 'debug' }, '--print-config');
    expect(code).to.equal(0);
    const lines = stdout.trim().split('\n');
    expect(lines).to.include.members([
      'MANAGEMENT_TOKEN=********  # environment',
      'LOG_LEVEL=debug  # environment',
      'MAX_REQUEST_SIZE=50MB  # default',
    ]);
    expect(stdout).not.to.include(MANAGEMENT_TOKEN);
    const invalid = await run({ LOG_LEVEL: 'debug' }, '--print-config');
    expect(invalid.code).to.equal(78);
    expect(invalid.stdout).to.include('LOG_LEVEL=debug  # environment').and.to.include('MANAGEMENT_TOKEN=  # not set');
    expect(invalid.stderr).to.match(/^llmp: MANAGEMENT_TOKEN is required\nllmp: set MANAGEMENT_TOKEN or MANAGEMENT/);
    expect(readdirSync(dir)).to.deep.equal([]);
  });

  it('--env-file provides settings, which the environment overrides; --check warns about unknown names', async () => {
    const lines = ['# settings', `MANAGEMENT_TOKEN="${MANAGEMENT_TOKEN}"`, 'LOG_LEVEL=debug', 'LOGLEVEL=debug'];
    writeFileSync(join(dir, 'llmp.env'), `${lines.join('\n')}\nREQUEST_TIMEOUT=5s\n`);
    const { code, stdout } = await run({ LOG_LEVEL: 'warn' }, '--env-file', 'llmp.env', '--print-config');
    expect(code).to.equal(0);
    expect(stdout.split('\n')).to.include.members([
      'LOG_LEVEL=warn  # environment',
      'REQUEST_TIMEOUT=5s  # env file llmp.env',
      'MANAGEMENT_TOKEN=********  # env file llmp.env',
    ]);
    const checked = await run({ LLMP_SERVR: 'x' }, '--check', '--env-file', 'llmp.env');
    expect(checked).to.deep.include({ code: 0, stdout: '' });
    expect(checked.stderr.trim().split('\n')).to.deep.equal([
      'warning: LLMP_SERVR in the environment is not a setting; did you mean LLMP_SERVER?',
      'warning: LOGLEVEL in llmp.env is not a setting; did you mean LOG_LEVEL?',
      'the configuration is valid',
    ]);
    const missing = await run({ MANAGEMENT_TOKEN, MAX_REQUEST_SIZE: '50' }, '--env-file', 'missing.env', '--check');
    expect(missing.code).to.equal(78);
    expect(missing.stderr).to.include('--env-file: cannot read missing.env: ENOENT');
  });
});
