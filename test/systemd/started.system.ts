/** Runs the commands of the units unchanged, with the environment that systemd would provide. */
import { expect } from 'chai';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { LLMP, shippedFiles } from '../../config/systemd/shipped.js';
import { unitText } from '../../config/systemd/unit.js';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { NotifySocket, WITHOUT_NOTIFY } from './notify-socket.js';

const SCRIPT = join(import.meta.dirname, '../../cli/main.js');

/** The environment of a dynamic user: no HOME, and no entry in the user database. */
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

  /** @param name of a shipped unit, or `init` for the unit that `llmp init` writes. @param credentials by their names. */
  constructor(name: string, socket: string, credentials: Readonly<Record<string, string>>) {
    const llmp = join(this.dir, 'llmp');
    const preloaded = join(this.dir, 'homeless.mjs');
    writeFileSync(preloaded, HOMELESS);
    symlinkSync(SCRIPT, llmp); // As npm installs it.
    const text = shippedFiles().get(name) ?? this.#textByInit();
    this.#text = text.replaceAll(LLMP, llmp).replaceAll('/etc/llmp/llmp.env', this.envFile);
    const folder = (what: string) => {
      mkdirSync(join(this.dir, what));
      return join(this.dir, what);
    };
    const store = folder('credentials');
    // systemd passes only the credentials that the unit names.
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

  /** The output on stderr. */
  get stderr(): string {
    return this.#stderr;
  }

  #textByInit(): string {
    const files = new Map([['MANAGEMENT_TOKEN', '/etc/llmp/management-token']]);
    return unitText({ command: [process.execPath, SCRIPT], envFile: this.envFile, files, needsLowPort: false });
  }

  /** The values of a directive of the unit. */
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

  /** Starts the unit, and waits for READY. @throws with its stderr if it exits before that. */
  async startUp(systemd: NotifySocket): Promise<{ exit: Promise<number | null> }> {
    const { exit } = this.start();
    const tooSoon = exit.then((code) => {
      throw new Error(`exited with ${code} before READY: ${this.#stderr}`);
    });
    await Promise.race([systemd.waitFor('READY', '1'), tooSoon]);
    return { exit };
  }

  /**
   * Does what `systemctl reload` does: runs one command after the other, until one fails. The commands of a unit with a mount namespace get no
   * credentials: none of them in systemd 257, all but one in 252.
   *
   * @param hasCredentials whether the commands get credentials nevertheless. @returns whether all commands succeeded.
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

  it('R08 starts with its management token as a credential, and reloads valid settings but not invalid ones', async () => {
    const started = (unit = new StartedUnit('llmp.service', systemd.path, {
      'management-token': `${MANAGEMENT_TOKEN}\n`,
    }));
    writeFileSync(started.envFile, 'LISTEN_ADDR=127.0.0.1:0\nSHUTDOWN_DELAY=0\n');
    const { exit } = await started.startUp(systemd);

    writeFileSync(started.envFile, 'LISTEN_ADDR=127.0.0.1:0\nSHUTDOWN_DELAY=0\nREQUEST_TIMEOUT=5\n');
    const before = systemd.received.length;
    expect(started.reload()).to.equal(false);

    writeFileSync(started.envFile, 'LISTEN_ADDR=127.0.0.1:0\nSHUTDOWN_DELAY=0\nREQUEST_TIMEOUT=5s\n');
    expect(started.reload()).to.equal(true);
    await systemd.waitFor('READY', '1', before);
    expect(systemd.all('RELOADING', before), 'only the valid reload reaches it').to.have.length(1);
    expect(started.reload(true), 'with credentials').to.equal(true);

    started.terminate();
    await systemd.waitFor('STOPPING', '1');
    expect(await exit).to.equal(0);
  });

  it('R08 reports a missing management token, and exits with a code that prevents restarts', async () => {
    const started = (unit = new StartedUnit('llmp.service', systemd.path, {}));
    writeFileSync(started.envFile, 'LISTEN_ADDR=127.0.0.1:0\n');
    const code = await started.start().exit;
    expect(code).to.equal(78);
    expect(started.stderr).to.include('MANAGEMENT_TOKEN is required');
    expect(started.lines('SetCredential'), 'systemd would fail with 243 and name nothing').to.have.length(1);
    expect(started.lines('RestartPreventExitStatus')[0]?.split(' ')).to.include.members(['78', '243']);
    expect(systemd.all('READY')).to.be.empty;
  });

  it('reports which database it cannot read, and exits with a code that prevents restarts', async () => {
    const started = (unit = new StartedUnit('llmp.service', systemd.path, { 'management-token': MANAGEMENT_TOKEN }));
    // Root can read every file, so the path is a folder, which cannot be opened as a file.
    const path = join(started.dir, 'folder.db');
    mkdirSync(path);
    const key = Buffer.alloc(32, 7).toString('base64');
    writeFileSync(started.envFile, `LISTEN_ADDR=127.0.0.1:0\nDATABASE_URL=sqlite:${path}\nENCRYPTION_KEY=${key}\n`);
    const code = await started.start().exit;
    expect(code).to.equal(77);
    expect(started.stderr).to.include(`cannot open the database ${path}`);
    expect(started.lines('RestartPreventExitStatus')[0]?.split(' ')).to.include('77');
  });

  it('reloads if the database URL and the keys are credentials too', async () => {
    const started = (unit = new StartedUnit('llmp.service', systemd.path, { 'management-token': MANAGEMENT_TOKEN }));
    writeFileSync(started.envFile, 'LISTEN_ADDR=127.0.0.1:0\nSHUTDOWN_DELAY=0\n');
    await started.startUp(systemd);
    // DB_DRIVER=postgres requires DATABASE_URL and ENCRYPTION_KEY.
    writeFileSync(started.envFile, 'LISTEN_ADDR=127.0.0.1:0\nSHUTDOWN_DELAY=0\nDB_DRIVER=postgres\n');
    expect(started.reload()).to.equal(true);
    expect(started.reload(true), 'with credentials, where it can detect that they are missing').to.equal(false);
  });

  it('starts as a user without a home folder, as `llmp init` writes it', async () => {
    const started = (unit = new StartedUnit('init', systemd.path, {
      'llmp.env': 'LISTEN_ADDR=127.0.0.1:0\nSHUTDOWN_DELAY=0\n',
      'management-token': MANAGEMENT_TOKEN,
    }));
    await started.startUp(systemd);
    expect(started.lines('Environment')).to.include('HOME=/var/lib/llmp');
    expect(started.lines('SyslogIdentifier')).to.deep.equal(['llmp']);
  });

  it(`of the dispatcher reports READY as soon as it can read the stream, and its status${WITHOUT_REDIS}`, async function () {
    if (WITHOUT_REDIS) this.skip();
    const redis = await TestRedis.start();
    try {
      // Without events the dispatcher does not use the backend.
      const started = (unit = new StartedUnit('llmp-dispatcher.service', systemd.path, {
        'dispatcher-api-key': 'key-of-the-back-end',
      }));
      const backend = 'DISPATCHER_SERVICE=helicone\nDISPATCHER_ENDPOINT=http://127.0.0.1:9\n';
      writeFileSync(
        started.envFile,
        `REDIS_ADDR=${redis.address}\nDISPATCHER_LISTEN_ADDR=127.0.0.1:0\nMANAGEMENT_TOKEN=${MANAGEMENT_TOKEN}\n${backend}`,
      );
      const { exit } = await started.startUp(systemd);
      await systemd.waitFor('STATUS', /^ready; 0 events pending$/);
      await systemd.waitFor('WATCHDOG', '1');
      const before = systemd.received.length;
      expect(started.reload(), 'without its required API key').to.equal(true);
      await systemd.waitFor('READY', '1', before);
      started.terminate();
      await systemd.waitFor('STOPPING', '1');
      expect(await exit).to.equal(0);
    } finally {
      await redis.stop();
    }
  });
});
