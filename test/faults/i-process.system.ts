import { expect } from 'chai';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { mintSecret } from '../../daemon/core/token.js';
import { startStandIn } from '../cli/stand-in.js';
import { canary, canaryEncryptionKey, secretsIn } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { permit } from '../support/leaks.js';
import { launchDaemon, spawnDaemon } from '../support/process.js';

const LLMP = join(import.meta.dirname, '../../cli/main.js');
const MANAGEMENT_TOKEN = canary('management');

const procOf = ({ pid }: ChildProcess, name: string) => readFileSync(`/proc/${String(pid)}/${name}`, 'latin1');

/** What other users can see of a process is read from /proc here. */
describe('I: the process', function () {
  this.timeout(60_000);
  const children: ChildProcess[] = [];
  let dir: string;

  before(function () {
    if (process.platform !== 'linux') this.skip();
  });
  beforeEach(() => {
    dir = temporaryFolder();
  });
  afterEach(async () => {
    for (const child of children.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  });

  async function startDaemon(env: Record<string, string>) {
    const daemon = await spawnDaemon({ DATABASE_URL: join(dir, 'llmp.db'), SHUTDOWN_DELAY: '0', ...env });
    children.push(daemon.child);
    return daemon;
  }

  describe('of a command', () => {
    for (const args of [['--management-token', MANAGEMENT_TOKEN], [`--management-token=${MANAGEMENT_TOKEN}`]]) {
      it(`I06 a management token on the command line is hidden, with a warning (${args.length} words)`, async () => {
        permit(/^command line of llmp project list$/, ['management'], 'the flag for it is tested');
        const daemon = await startStandIn();
        const asked = new Promise<void>((resolve) => {
          daemon.answer = () => {
            resolve();
          };
        });
        const command = [LLMP, 'project', 'list', '--server', daemon.url, ...args];
        const child = spawn(process.execPath, command, {
          env: { PATH: process.env.PATH },
          stdio: ['ignore', 'pipe', 'pipe'],
        });
        children.push(child);
        await asked;
        expect(daemon.asked[0]?.headers.authorization).to.equal(`Bearer ${MANAGEMENT_TOKEN}`);
        expect(procOf(child, 'cmdline').replace(/\0+$/, '')).to.equal('llmp');
        const complaint = text(child.stderr);
        child.kill('SIGTERM');
        expect(await complaint).to.include(
          'other users can see --management-token with `ps`; use --management-token-file',
        );
        await daemon.stop();
      });
    }

    it('I06 a command line without a token stays readable', async () => {
      const { child } = await startDaemon({ MANAGEMENT_TOKEN });
      expect(procOf(child, 'cmdline').split('\0').slice(-3)).to.deep.equal([LLMP, 'daemon', '']);
    });
  });

  it('I03 the error of a daemon that cannot start does not contain text that looks like a secret', async () => {
    const path = `${dir}/a-file/postgres://llmp:${canary('password')}@db/${mintSecret()}/llmp.db`;
    writeFileSync(join(dir, 'a-file'), '');
    const { exit, printed } = launchDaemon({ MANAGEMENT_TOKEN, DATABASE_URL: path });
    expect(await exit).not.to.equal(0);
    expect(printed.stderr).to.match(/^llmp: .*a-file/);
    expect(secretsIn(printed.stdout + printed.stderr)).to.deep.equal([]);
  });

  it('I03 a rejected connection string is not repeated', async () => {
    const password = canary('password');
    const { exit, printed } = launchDaemon({ MANAGEMENT_TOKEN, DATABASE_URL: `postgres://llmp:${password}@db/llmp` });
    expect(await exit).to.equal(78);
    expect(printed.stderr).to.include('DATABASE_URL').and.to.include('set DB_DRIVER=postgres');
    expect(secretsIn(printed.stdout + printed.stderr)).to.deep.equal([]);
  });

  it('I07 with secrets in files, neither the environment nor the command line contains them', async () => {
    const fileWith = (name: string, content: string) => {
      writeFileSync(join(dir, name), `${content}\n`, { mode: 0o600 });
      return join(dir, name);
    };
    const { child, url } = await startDaemon({
      MANAGEMENT_TOKEN_FILE: fileWith('management-token', MANAGEMENT_TOKEN),
      ENCRYPTION_KEY_FILE: fileWith('encryption.key', canaryEncryptionKey()),
    });
    const headers = { authorization: `Bearer ${MANAGEMENT_TOKEN}` };
    expect((await fetch(`${url}/manage/projects`, { headers })).status).to.equal(200);
    expect(procOf(child, 'environ')).to.include('MANAGEMENT_TOKEN_FILE=');
    for (const name of ['environ', 'cmdline']) expect(secretsIn(procOf(child, name)), name).to.deep.equal([]);
  });

  it('I08 SIGUSR1 opens no inspector, and the daemon continues to serve', async () => {
    const { child, url, logged, printed } = await startDaemon({ MANAGEMENT_TOKEN });
    child.kill('SIGUSR1');
    // Signals are handled in order: the first has been handled when the second gets its response.
    child.kill('SIGHUP');
    await eventually('a response to SIGHUP', () => logged.some((line) => line.includes('settings reloaded')));
    expect((await fetch(`${url}/ready`)).status).to.equal(200);
    expect(listeningPortsOf(child)).to.deep.equal([Number(new URL(url).port)]);
    expect(printed.stdout + printed.stderr).not.to.match(/debugger|inspector/i);
  });

  describe('I09 no report is written, whatever options Node has,', () => {
    const EXHAUST = "process.on('SIGWINCH', () => { const all = []; for (;;) all.push(new Array(1e5).fill(0.5)); });";
    const reports = () => readdirSync(dir).filter((name) => name.startsWith('report.'));
    let options: string;

    beforeEach(() => {
      writeFileSync(join(dir, 'exhaust.mjs'), EXHAUST);
      const wanted = ['--report-on-fatalerror', '--report-on-signal', '--report-uncaught-exception'];
      options = [...wanted, `--report-directory=${dir}`, '--max-old-space-size=64', `--import=${dir}/exhaust.mjs`].join(
        ' ',
      );
    });

    it('I09 no report is written when memory is exhausted', async () => {
      // The same options make another process write one, with its environment in it.
      const other = spawn(process.execPath, ['-e', "process.emit('SIGWINCH')"], {
        env: { NODE_OPTIONS: options, MANAGEMENT_TOKEN: 'of another process' },
        stdio: 'ignore',
      });
      await once(other, 'exit');
      expect(reports()).to.have.lengthOf(1);
      expect(readFileSync(join(dir, reports()[0]!), 'utf8')).to.include('of another process');

      const { child } = await startDaemon({ MANAGEMENT_TOKEN, NODE_OPTIONS: options });
      child.kill('SIGWINCH');
      const [, signal] = (await once(child, 'exit')) as [null, string];
      expect(signal).to.equal('SIGABRT');
      expect(reports()).to.have.lengthOf(1);
    });

    it('I09 no report is written when a signal asks for it', async () => {
      const { child } = await startDaemon({ MANAGEMENT_TOKEN, NODE_OPTIONS: options });
      child.kill('SIGUSR2');
      await once(child, 'exit'); // The default action of that signal in a process without a handler.
      expect(reports()).to.deep.equal([]);
    });
  });

  it('I17 every file is readable only by its owner with any umask, including those that a kill leaves', async () => {
    const state = join(dir, 'state');
    const env = {
      PATH: process.env.PATH ?? '',
      MANAGEMENT_TOKEN,
      DATABASE_URL: join(state, 'llmp.db'),
      LISTEN_ADDR: '127.0.0.1:0',
    };
    const modes = () =>
      Object.fromEntries(
        readdirSync(state).map((name) => [name, (statSync(join(state, name)).mode & 0o777).toString(8)]),
      );
    const openly = ['-c', 'umask 0; exec "$@"', 'sh', process.execPath, LLMP];

    const daemon = spawn('sh', [...openly, 'daemon'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    children.push(daemon);
    let printed = '';
    daemon.stdout.on('data', (piece: Buffer) => (printed += piece.toString()));
    await eventually('it listens', () => printed.includes('listening'), 20_000);
    daemon.kill('SIGKILL');
    await once(daemon, 'exit');
    expect(Object.keys(modes())).to.include.members([
      'llmp.db',
      'llmp.db-wal',
      'llmp.db-shm',
      'llmp.db.key',
      'llmp.db.lock',
    ]);
    expect(new Set(Object.values(modes()))).to.deep.equal(new Set(['600']));

    // A tool that opens the database itself.
    unlinkSync(join(state, 'llmp.db.lock'));
    const direct = spawn('sh', [...openly, 'migrate', 'up', '--direct'], { env, stdio: 'ignore' });
    expect(await once(direct, 'exit')).to.deep.equal([0, null]);
    expect(modes()).to.include({ 'llmp.db': '600', 'llmp.db.lock': '600' });
    expect(new Set(Object.values(modes()))).to.deep.equal(new Set(['600']));
  });
});

/** The TCP ports on which a process listens: its own sockets among all listening ones. */
function listeningPortsOf({ pid }: ChildProcess): number[] {
  const folder = `/proc/${String(pid)}/fd`;
  const sockets = readdirSync(folder).flatMap(
    (fd) => /^socket:\[(\d+)\]$/.exec(readlinkSync(join(folder, fd)))?.[1] ?? [],
  );
  const LISTEN = '0A';
  return ['tcp', 'tcp6']
    .flatMap((family) =>
      readFileSync(`/proc/${String(pid)}/net/${family}`, 'utf8')
        .trim()
        .split('\n')
        .slice(1),
    )
    .map((line) => line.trim().split(/\s+/))
    .filter((columns) => columns[3] === LISTEN && sockets.includes(columns[9] ?? ''))
    .map((columns) => parseInt(columns[1]?.split(':')[1] ?? '', 16));
}
