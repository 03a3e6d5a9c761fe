/** What config/systemd and the Debian package promise, on a real systemd. The tests follow each other on one machine. */
import { expect } from 'chai';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { debianPackage } from '../packaging/released.js';
import { eventually } from '../support/eventually.js';
import { Machine } from './machine.js';

const ENV = '/etc/llmp/llmp.env';
const NODE = '/usr/lib/llmp/bin/node';
const PROVIDER = '127.0.0.1:9000';
const UPSTREAM_KEY = 'sk-the-key-of-the-virtual-machine';

/** Answers every request with the credential that it came with. */
const PROVIDER_SCRIPT = `const [host, port] = '${PROVIDER}'.split(':');
require('node:http').createServer((req, res) => {
  req.resume();
  res.setHeader('content-type', 'application/json').end(JSON.stringify({ object: 'list', data: [], credential: req.headers.authorization }));
}).listen(Number(port), host);
`;
/** Prints the status and the body of a response: node request.cjs PORT TOKEN. */
const REQUEST_SCRIPT = `const [, , port, token] = process.argv;
fetch('http://127.0.0.1:' + port + '/v1/models', { headers: { authorization: 'Bearer ' + token } })
  .then(async (response) => console.log(response.status, await response.text()), (error) => { console.log(String(error.cause ?? error)); process.exitCode = 1; });
`;

/** Longer than WatchdogSec=60 and the time that systemd gives a process to dump its memory. */
const WATCHDOG_MS = 240_000;

describe('on a real systemd', function () {
  this.timeout(1_200_000);
  let machine: Machine;
  let files: string;
  let token = '';
  const figures: Record<string, number> = {};

  before(async () => {
    files = mkdtempSync(join(tmpdir(), 'llmp-vm-files-'));
    const path = debianPackage();
    copyFileSync(path, join(files, basename(path)));
    writeFileSync(join(files, 'provider.cjs'), PROVIDER_SCRIPT);
    writeFileSync(join(files, 'request.cjs'), REQUEST_SCRIPT);
    machine = await Machine.start(files);
  });
  after(async () => {
    if ((machine as Machine | undefined) === undefined) return; // It did not start.
    console.log(`    boots: ${machine.bootMs.join(' ms, ')} ms; ${JSON.stringify(figures)}`);
    await machine.stop();
    rmSync(files, { recursive: true });
  });

  const properties = async (unit: string, ...names: string[]) => {
    const output = await machine.succeed(`systemctl show ${names.map((name) => `-p ${name}`).join(' ')} ${unit}`);
    return Object.fromEntries(
      output.split('\n').map((line) => [line.split('=')[0] ?? '', line.replace(/^[^=]*=/, '')]),
    );
  };
  const mainPid = async () => (await properties('llmp.service', 'MainPID')).MainPID ?? '';
  const isActive = async (unit = 'llmp.service') => (await properties(unit, 'ActiveState')).ActiveState === 'active';
  const journal = () => machine.succeed('journalctl --no-pager -o cat -u llmp.service');
  const request = async (port = 8080) => (await machine.run(`${NODE} /mnt/request.cjs ${port} '${token}'`)).output;
  const manage = (command: string) =>
    machine.succeed(`MANAGEMENT_TOKEN_FILE=/etc/llmp/credentials/management-token llmp ${command}`);
  const setSettings = (...lines: string[]) => machine.succeed(`cat > ${ENV} <<'END'\n${lines.join('\n')}\nEND`);
  const SETTINGS = [`UPSTREAM_BASE_URL=http://${PROVIDER}`, 'SHUTDOWN_DELAY=0'];
  const startProvider = () => machine.succeed(`systemd-run --quiet --unit=provider ${NODE} /mnt/provider.cjs`);
  const expectForwarded = async (port?: number) => {
    expect(await request(port))
      .to.match(/^200 /)
      .and.to.include(`"credential":"Bearer ${UPSTREAM_KEY}"`);
  };
  /** Waits for another main process. */
  const replaced = async (pid: string, withinMs: number) => {
    const begun = performance.now();
    await eventually(
      'another process serves',
      async () => (await isActive()) && ![pid, '0'].includes(await mainPid()),
      withinMs,
    );
    return Math.round(performance.now() - begun);
  };

  it('installs from the Debian package, and starts and enables nothing', async () => {
    const begun = performance.now();
    const output = await machine.succeed('apt-get install --yes /mnt/llmp_*.deb');
    figures.installMs = Math.round(performance.now() - begun);
    expect(output).to.include('Setting up llmp');
    for (const unit of ['llmp.service', 'llmp-dispatcher.service']) {
      expect(await properties(unit, 'ActiveState', 'UnitFileState', 'LoadState')).to.deep.equal({
        ActiveState: 'inactive',
        UnitFileState: 'disabled',
        LoadState: 'loaded',
      });
    }
    expect(await machine.succeed('id -un llmp && id -Gn llmp-dispatcher')).to.equal('llmp\nllmp-dispatcher llmp');
    expect(await machine.succeed(`stat -c '%a %U:%G' /etc/llmp ${ENV} /etc/llmp/credentials`)).to.equal(
      '750 root:llmp\n640 root:llmp\n700 root:root',
    );
    expect(await machine.succeed('llmp version')).to.match(/^llmp \d/);
  });

  it('R08 without a management token says what is missing, exits with 78, and is not restarted', async () => {
    expect((await machine.run('systemctl start llmp')).exitCode).not.to.equal(0);
    const failed = await properties('llmp.service', 'ActiveState', 'ExecMainStatus', 'NRestarts');
    expect(failed).to.deep.equal({ ActiveState: 'failed', ExecMainStatus: '78', NRestarts: '0' });
    expect(await journal()).to.include('MANAGEMENT_TOKEN');
  });

  it('starts with a management token, and forwards a request', async () => {
    await startProvider();
    await machine.succeed('(umask 077; head -c 24 /dev/urandom | base64 > /etc/llmp/credentials/management-token)');
    await setSettings(...SETTINGS);
    const begun = performance.now();
    await machine.succeed('systemctl enable --now llmp');
    figures.startMs = Math.round(performance.now() - begun);
    expect((await properties('llmp.service', 'UnitFileState')).UnitFileState).to.equal('enabled');
    await machine.succeed(`(umask 077; echo '${UPSTREAM_KEY}' > /root/key)`);
    await manage('project create --name web --key-file /root/key');
    token = await manage('token generate --quiet');
    await expectForwarded();
    figures.memoryMB = Math.round(Number((await properties('llmp.service', 'MemoryCurrent')).MemoryCurrent) / 2 ** 20);
  });

  it('R08 has the sandbox in force', async () => {
    const pid = await mainPid();
    const status = await machine.succeed(`cat /proc/${pid}/status`);
    expect(status)
      .to.match(/^NoNewPrivs:\s1$/m)
      .and.to.match(/^Seccomp:\s2$/m)
      .and.to.match(/^CapBnd:\s0+$/m);
    const uid = await machine.succeed('id -u llmp');
    expect(status).to.match(new RegExp(`^Uid:\\s${uid}\\s`, 'm'));
    // As root in the mount namespace of the daemon: what fails there fails for the daemon.
    const inside = (command: string) => machine.run(`nsenter --target ${pid} --mount -- ${command}`);
    for (const path of ['/etc/x', '/usr/x', '/var/x', '/opt/x', '/boot/x']) {
      expect((await inside(`touch ${path}`)).output, path).to.include('Read-only file system');
    }
    for (const path of ['/var/lib/llmp/x', '/var/log/llmp/x']) {
      expect((await inside(`touch ${path}`)).exitCode, path).to.equal(0);
      await machine.succeed(`rm ${path}`);
    }
    expect((await inside('ls -A /home /root /tmp')).output).not.to.include('key');
    expect(await machine.succeed('ls /root')).to.include('key');
    const devices = (await inside('ls /dev')).output.split('\n');
    expect(devices).to.include('null').and.not.to.include('vda');
    const security = await machine.succeed('systemd-analyze security --no-pager llmp.service | tail -n 1');
    expect(security).to.match(/exposure level for llmp\.service: 1\.3 OK/i);
  });

  it('reloads good settings, and refuses bad ones without a change', async () => {
    const pid = await mainPid();
    await setSettings(...SETTINGS, 'REQUEST_TIMEOUT=5');
    expect((await machine.run('systemctl reload llmp')).exitCode).not.to.equal(0);
    await expectForwarded();
    await setSettings(...SETTINGS, 'LOG_LEVEL=debug');
    await machine.succeed('systemctl reload llmp');
    await eventually('it says so', async () => (await journal()).includes('settings reloaded'), 30_000);
    expect(await mainPid()).to.equal(pid);
    await expectForwarded();
    await setSettings(...SETTINGS);
    await machine.succeed('systemctl reload llmp');
  });

  it('is restarted after kill -9, with its tokens', async () => {
    const pid = await mainPid();
    await machine.succeed(`kill -9 ${pid}`);
    figures.restartedMs = await replaced(pid, 120_000);
    await expectForwarded();
  });

  it('is restarted by the watchdog if it does not respond', async () => {
    const pid = await mainPid();
    await machine.succeed(`kill -STOP ${pid}`);
    figures.watchdogMs = await replaced(pid, WATCHDOG_MS);
    expect(await journal()).to.match(/Watchdog timeout/i);
    await expectForwarded();
  });

  it('lets logrotate rename the audit file, and continues in a new one', async () => {
    const audit = '/var/log/llmp/audit.log';
    await machine.succeed(`test -s ${audit} && logrotate --force /etc/logrotate.d/llmp && test ! -e ${audit}`);
    await manage('project create --name other --key-file /root/key');
    await eventually('a new file', async () => (await machine.run(`test -s ${audit}`)).exitCode === 0);
    expect(await machine.succeed(`stat -c '%U %a' ${audit}`)).to.equal('llmp 600');
    expect(await machine.succeed(`llmp audit verify --env-file ${ENV}`)).to.match(/Verified \d/);
  });

  it('preserves settings, and what runs, when the package is installed again', async () => {
    const pid = await mainPid();
    const output = await machine.succeed('apt-get install --yes --reinstall /mnt/llmp_*.deb');
    expect(output).to.include('systemctl restart llmp.service');
    expect(await mainPid()).to.equal(pid);
    expect(await machine.succeed(`cat ${ENV}`)).to.equal(SETTINGS.join('\n'));
    expect(await machine.succeed(`stat -c '%a %U:%G' ${ENV}`)).to.equal('640 root:llmp');
    await machine.succeed('systemctl restart llmp');
    await expectForwarded();
  });

  it('runs another instance with its own settings and folders', async () => {
    await machine.succeed(`printf '%s\\n' ${SETTINGS.join(' ')} LISTEN_ADDR=127.0.0.1:8081 > /etc/llmp/llmp-1.env`);
    await machine.succeed('systemctl start llmp@1');
    expect(await machine.succeed("stat -c '%a %U' /var/lib/llmp-1 /var/log/llmp-1")).to.equal('700 llmp\n750 llmp');
    // Another database: the token is unknown there.
    expect(await request(8081)).to.match(/^401 /);
    await machine.succeed('systemctl stop llmp@1');
  });

  it('starts after a reboot, with its tokens', async () => {
    await machine.reboot();
    await eventually('it is active', () => isActive(), 180_000);
    await startProvider();
    await expectForwarded();
  });

  it('R08 exits with 78 for invalid settings at its start, and is not restarted', async () => {
    await setSettings(...SETTINGS, 'LISTEN_ADDR=everywhere');
    expect((await machine.run('systemctl restart llmp')).exitCode).not.to.equal(0);
    const failed = await properties('llmp.service', 'ActiveState', 'ExecMainStatus', 'NRestarts');
    expect(failed).to.deep.equal({ ActiveState: 'failed', ExecMainStatus: '78', NRestarts: '0' });
    await setSettings(...SETTINGS);
    await machine.succeed('systemctl reset-failed llmp && systemctl start llmp');
    await expectForwarded();
  });

  it('leaves nothing after a purge', async () => {
    await machine.succeed('apt-get purge --yes llmp');
    await expectNothingLeft();
  });

  it('runs the unit that llmp init writes in place of that of the package, and leaves nothing after a purge', async () => {
    await machine.succeed('apt-get install --yes /mnt/llmp_*.deb');
    const set = ['LISTEN_ADDR=127.0.0.1:8080', ...SETTINGS].map((setting) => `--set ${setting}`).join(' ');
    await machine.succeed(`llmp init --non-interactive ${set}`);
    expect(await machine.succeed('head -n 1 /etc/llmp/llmp.service')).to.match(/^# Written by llmp init/);
    await machine.succeed('systemctl enable --now /etc/llmp/llmp.service'); // As llmp init says.
    expect((await properties('llmp.service', 'DynamicUser')).DynamicUser).to.equal('yes');
    const withToken = (command: string) =>
      machine.succeed(`MANAGEMENT_TOKEN_FILE=/etc/llmp/management-token llmp ${command}`);
    await withToken('project create --name web --key-file /root/key');
    token = await withToken('token generate --quiet');
    await expectForwarded();
    await machine.succeed(`llmp doctor --timeout 2m --env-file ${ENV}`); // An emulated processor is slow.
    await machine.succeed('apt-get purge --yes llmp');
    await expectNothingLeft();
  });

  async function expectNothingLeft(): Promise<void> {
    const found = await machine.succeed(
      "find / -xdev -path /proc -prune -o -path /tmp -prune -o -iname '*llmp*' ! -path '/var/log/journal/*' -print",
    );
    expect(found).to.equal('');
    expect(await machine.succeed('grep -c llmp /etc/passwd /etc/group /etc/shadow || true')).to.match(
      /^\/etc\/passwd:0\n\/etc\/group:0\n\/etc\/shadow:0$/,
    );
    expect(await machine.succeed("systemctl list-units --all --no-legend 'llmp*'")).to.equal('');
  }
});
