/** The units' own lines, run as they are, with what systemd would give them. */
import { expect } from 'chai';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { LLMP, shippedFiles } from '../../config/systemd/shipped.js';
import { unitText } from '../../config/systemd/unit.js';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { NotifySocket, WITHOUT_NOTIFY } from './notify-socket.js';

const SCRIPT = join(import.meta.dirname, '../../cli/main.js');

/** What a process meets whose user systemd made up: no HOME, and no entry among the users of the machine. */
const HOMELESS = `import os from 'node:os';
import { syncBuiltinESMExports } from 'node:module';
os.homedir = () => { throw new Error('uv_os_homedir returned ENOENT'); };
syncBuiltinESMExports();
`;

class StartedUnit {
  readonly dir = temporaryFolder();
  readonly envFile = join(this.dir, 'llmp.env');
  readonly #text: string;
  readonly #env: Record<string, string>;
  #process: ChildProcess | null = null;
  #stderr = '';

  /** @param name of a unit that comes with llmp, or `init` for one that `llmp init` writes. @param credentials by their names. */
  constructor(name: string, socket: string, credentials: Readonly<Record<string, string>>) {
    const llmp = join(this.dir, 'llmp');
    const preloaded = join(this.dir, 'homeless.mjs');
    writeFileSync(preloaded, HOMELESS);
    writeFileSync(llmp, `#!/bin/sh\nexec ${process.execPath} -- ${SCRIPT} "$@"\n`);
    chmodSync(llmp, 0o755);
    const text = shippedFiles().get(name) ?? this.#textByInit();
    this.#text = text.replaceAll(LLMP, llmp).replaceAll('/etc/llmp/llmp.env', this.envFile);
    const folder = (what: string) => {
      mkdirSync(join(this.dir, what));
      return join(this.dir, what);
    };
    const store = folder('credentials');
    // systemd hands over those that the unit names, and no other.
    for (const line of this.lines('SetCredential')) {
      const [credential = '', content = ''] = line.split(':');
      writeFileSync(join(store, credential), content.replaceAll('\\n', '\n'));
    }
    for (const credential of this.lines('LoadCredential').map((line) => line.split(':')[0] ?? '')) {
      const secret = credentials[credential];
      if (secret !== undefined) writeFileSync(join(store, credential), secret);
    }
    this.#env = {
      PATH: process.env.PATH ?? '',
      NODE_OPTIONS: `--import=${pathToFileURL(preloaded).href}`,
      NOTIFY_SOCKET: socket,
      CREDENTIALS_DIRECTORY: store,
      STATE_DIRECTORY: folder('state'),
      LOGS_DIRECTORY: folder('logs'),
      RUNTIME_DIRECTORY: folder('run'),
    };
  }

  /** What it wrote to stderr. */
  get stderr(): string {
    return this.#stderr;
  }

  #textByInit(): string {
    const files = new Map([['MANAGEMENT_TOKEN', '/etc/llmp/management-token']]);
    return unitText({ command: [process.execPath, SCRIPT], envFile: this.envFile, files, needsLowPort: false });
  }

  /** The values of a setting of the unit. */
  lines(name: string): string[] {
    return this.#text.split('\n').flatMap((line) => (line.startsWith(`${name}=`) ? line.slice(name.length + 1) : []));
  }

  start(): { exit: Promise<number | null> } {
    const expanded = (text: string) => text.replaceAll('%d', this.#env.CREDENTIALS_DIRECTORY ?? '');
    const [program = '', ...args] = expanded(this.lines('ExecStart')[0] ?? '').split(' ');
    const [watchdog = ''] = this.lines('WatchdogSec');
    const assigned = this.lines('Environment').map((line) => expanded(line).split('=', 2) as [string, string]);
    const env = { ...this.#env, ...Object.fromEntries(assigned), WATCHDOG_USEC: `${watchdog}000000` };
    const child = spawn(program, args, { env, cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] });
    child.stderr.on('data', (data) => (this.#stderr += String(data)));
    this.#process = child;
    return { exit: new Promise((resolve) => child.once('close', resolve)) };
  }

  /** Starts it, and waits until it is up. @throws with what it said when it ends before. */
  async startUp(systemd: NotifySocket): Promise<{ exit: Promise<number | null> }> {
    const { exit } = this.start();
    const tooSoon = exit.then((code) => {
      throw new Error(`it ended with ${code} before it was up: ${this.#stderr}`);
    });
    await Promise.race([systemd.hears('READY', '1'), tooSoon]);
    return { exit };
  }

  /**
   * What `systemctl reload` does: one line after the other, until one fails. The lines of a unit with a mount namespace get no
   * credentials: none of them in systemd 257, all but one in 252.
   *
   * @param hasCredentials says whether they get them all the same. @returns whether none failed.
   */
  reload(hasCredentials = false): boolean {
    const { CREDENTIALS_DIRECTORY, ...others } = this.#env;
    const env = { ...others, MAINPID: String(this.#process?.pid), ...(hasCredentials && { CREDENTIALS_DIRECTORY }) };
    return this.lines('ExecReload').every((line) => {
      const [program = '', ...args] = line.replace('$MAINPID', env.MAINPID).split(' ');
      return spawnSync(program, args, { env, cwd: '/' }).status === 0;
    });
  }

  terminate(): void {
    this.#process?.kill('SIGTERM');
  }

  kill(): void {
    this.#process?.kill('SIGKILL');
  }
}

describe(`a unit that is started${WITHOUT_NOTIFY}`, function () {
  this.timeout(60_000);
  let systemd: NotifySocket;
  let unit: StartedUnit | null = null;

  before(function () {
    if (WITHOUT_NOTIFY) this.skip();
  });
  beforeEach(async () => {
    systemd = await NotifySocket.open();
  });
  afterEach(() => {
    unit?.kill();
    unit = null;
    systemd.close();
  });

  it('R08 comes up with a credential for its management token, reloads what is right, and nothing that is wrong (finding F1)', async () => {
    const started = (unit = new StartedUnit('llmp.service', systemd.path, {
      'management-token': `${MANAGEMENT_TOKEN}\n`,
    }));
    writeFileSync(started.envFile, 'LISTEN_ADDR=127.0.0.1:0\nSHUTDOWN_DELAY=0\n');
    const { exit } = await started.startUp(systemd);

    writeFileSync(started.envFile, 'LISTEN_ADDR=127.0.0.1:0\nSHUTDOWN_DELAY=0\nREQUEST_TIMEOUT=5\n');
    const before = systemd.told.length;
    expect(started.reload()).to.equal(false);

    writeFileSync(started.envFile, 'LISTEN_ADDR=127.0.0.1:0\nSHUTDOWN_DELAY=0\nREQUEST_TIMEOUT=5s\n');
    expect(started.reload()).to.equal(true);
    await systemd.hears('READY', '1', before);
    expect(systemd.all('RELOADING', before), 'it heard of the good one alone').to.have.length(1);
    expect(started.reload(true), 'with credentials').to.equal(true);

    started.terminate();
    await systemd.hears('STOPPING', '1');
    expect(await exit).to.equal(0);
  });

  it('R08 says that it has no management token, and ends with what no restart mends (finding F3)', async () => {
    const started = (unit = new StartedUnit('llmp.service', systemd.path, {}));
    writeFileSync(started.envFile, 'LISTEN_ADDR=127.0.0.1:0\n');
    const code = await started.start().exit;
    expect(code).to.equal(78);
    expect(started.stderr).to.include('MANAGEMENT_TOKEN is required');
    expect(started.lines('SetCredential'), 'systemd would fail with 243 and name nothing').to.have.length(1);
    expect(started.lines('RestartPreventExitStatus')[0]?.split(' ')).to.include.members(['78', '243']);
    expect(systemd.all('READY')).to.be.empty;
  });

  it('says which database it may not read, and ends with what no restart mends (finding F5)', async () => {
    const started = (unit = new StartedUnit('llmp.service', systemd.path, { 'management-token': MANAGEMENT_TOKEN }));
    // Root may read everything: what nobody can open as a file is a folder.
    const path = join(started.dir, 'folder.db');
    mkdirSync(path);
    const key = Buffer.alloc(32, 7).toString('base64');
    writeFileSync(started.envFile, `LISTEN_ADDR=127.0.0.1:0\nDATABASE_URL=sqlite:${path}\nENCRYPTION_KEY=${key}\n`);
    const code = await started.start().exit;
    expect(code).to.equal(77);
    expect(started.stderr).to.include(`cannot open the database ${path}`);
    expect(started.lines('RestartPreventExitStatus')[0]?.split(' ')).to.include('77');
  });

  it('reloads where the database and its keys are credentials as well (finding F1)', async () => {
    const started = (unit = new StartedUnit('llmp.service', systemd.path, { 'management-token': MANAGEMENT_TOKEN }));
    writeFileSync(started.envFile, 'LISTEN_ADDR=127.0.0.1:0\nSHUTDOWN_DELAY=0\n');
    await started.startUp(systemd);
    // DATABASE_URL and ENCRYPTION_KEY are required with it.
    writeFileSync(started.envFile, 'LISTEN_ADDR=127.0.0.1:0\nSHUTDOWN_DELAY=0\nDB_DRIVER=postgres\n');
    expect(started.reload()).to.equal(true);
    expect(started.reload(true), 'where it could see that they are missing').to.equal(false);
  });

  it('comes up as a user without a home folder, as `llmp init` writes it (finding F2)', async () => {
    const started = (unit = new StartedUnit('init', systemd.path, {
      'llmp.env': 'LISTEN_ADDR=127.0.0.1:0\nSHUTDOWN_DELAY=0\n',
      'management-token': MANAGEMENT_TOKEN,
    }));
    await started.startUp(systemd);
    expect(started.lines('Environment')).to.include('HOME=/var/lib/llmp');
    expect(started.lines('SyslogIdentifier')).to.deep.equal(['llmp']);
  });

  it(`is the dispatcher's, up as soon as it has its stream, and says how it does${WITHOUT_REDIS} (finding F1)`, async function () {
    if (WITHOUT_REDIS) this.skip();
    const redis = await TestRedis.start();
    try {
      // It asks nothing of this back end while there is no event.
      const started = (unit = new StartedUnit('llmp-dispatcher.service', systemd.path, {
        'dispatcher-api-key': 'what-the-back-end-wants',
      }));
      const backend = 'DISPATCHER_SERVICE=helicone\nDISPATCHER_ENDPOINT=http://127.0.0.1:9\n';
      writeFileSync(
        started.envFile,
        `REDIS_ADDR=${redis.address}\nDISPATCHER_LISTEN_ADDR=127.0.0.1:0\nMANAGEMENT_TOKEN=${MANAGEMENT_TOKEN}\n${backend}`,
      );
      const { exit } = await started.startUp(systemd);
      await systemd.hears('STATUS', /^ready; 0 events in hand$/);
      await systemd.hears('WATCHDOG', '1');
      const before = systemd.told.length;
      expect(started.reload(), 'without its API key, which is required').to.equal(true);
      await systemd.hears('READY', '1', before);
      started.terminate();
      await systemd.hears('STOPPING', '1');
      expect(await exit).to.equal(0);
    } finally {
      await redis.stop();
    }
  });
});
