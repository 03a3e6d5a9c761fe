/** The units' own lines, run as they are, with what systemd would give them. */
import { expect } from 'chai';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LLMP, shippedFiles } from '../../config/systemd/shipped.js';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { NotifySocket, WITHOUT_NOTIFY } from './notify-socket.js';

const SCRIPT = join(import.meta.dirname, '../../cli/main.js');

class StartedUnit {
  readonly dir = temporaryFolder();
  readonly envFile = join(this.dir, 'llmp.env');
  readonly #text: string;
  readonly #env: Record<string, string>;
  #process: ChildProcess | null = null;

  /** @param credentials by their names. */
  constructor(name: string, socket: string, credentials: Readonly<Record<string, string>>) {
    const llmp = join(this.dir, 'llmp');
    writeFileSync(llmp, `#!/bin/sh\nexec ${process.execPath} -- ${SCRIPT} "$@"\n`);
    chmodSync(llmp, 0o755);
    const text = shippedFiles().get(name) ?? '';
    this.#text = text.replaceAll(LLMP, llmp).replaceAll('/etc/llmp/llmp.env', this.envFile);
    const folder = (what: string) => {
      mkdirSync(join(this.dir, what));
      return join(this.dir, what);
    };
    const store = folder('credentials');
    // systemd hands over those that the unit names, and no other.
    for (const credential of this.lines('LoadCredential').map((line) => line.split(':')[0] ?? '')) {
      const secret = credentials[credential];
      if (secret !== undefined) writeFileSync(join(store, credential), secret);
    }
    this.#env = {
      PATH: process.env.PATH ?? '',
      NOTIFY_SOCKET: socket,
      CREDENTIALS_DIRECTORY: store,
      STATE_DIRECTORY: folder('state'),
      LOGS_DIRECTORY: folder('logs'),
      RUNTIME_DIRECTORY: folder('run'),
    };
  }

  /** The values of a setting of the unit. */
  lines(name: string): string[] {
    return this.#text.split('\n').flatMap((line) => (line.startsWith(`${name}=`) ? line.slice(name.length + 1) : []));
  }

  start(): { exit: Promise<number | null> } {
    const [program = '', ...args] = this.lines('ExecStart')[0]?.split(' ') ?? [];
    const [watchdog = ''] = this.lines('WatchdogSec');
    const env = { ...this.#env, WATCHDOG_USEC: `${watchdog}000000` };
    const child = spawn(program, args, { env, cwd: '/', stdio: 'ignore' });
    this.#process = child;
    return { exit: new Promise((resolve) => child.once('exit', resolve)) };
  }

  /** What `systemctl reload` does: one line after the other, until one fails. @returns whether none did. */
  reload(): boolean {
    return this.lines('ExecReload').every((line) => {
      const [program = '', ...args] = line.replace('$MAINPID', String(this.#process?.pid)).split(' ');
      return spawnSync(program, args, { env: this.#env, cwd: '/' }).status === 0;
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

  it('R08 comes up with a credential for its management token, reloads what is right, and nothing that is wrong', async () => {
    const started = (unit = new StartedUnit('llmp.service', systemd.path, {
      'management-token': `${MANAGEMENT_TOKEN}\n`,
    }));
    writeFileSync(started.envFile, 'LISTEN_ADDR=127.0.0.1:0\nSHUTDOWN_DELAY=0\n');
    const { exit } = started.start();
    await systemd.hears('READY', '1');

    writeFileSync(started.envFile, 'LISTEN_ADDR=127.0.0.1:0\nSHUTDOWN_DELAY=0\nREQUEST_TIMEOUT=5\n');
    const before = systemd.told.length;
    expect(started.reload()).to.equal(false);

    writeFileSync(started.envFile, 'LISTEN_ADDR=127.0.0.1:0\nSHUTDOWN_DELAY=0\nREQUEST_TIMEOUT=5s\n');
    expect(started.reload()).to.equal(true);
    await systemd.hears('READY', '1', before);
    expect(systemd.all('RELOADING', before), 'it heard of the good one alone').to.have.length(1);

    started.terminate();
    await systemd.hears('STOPPING', '1');
    expect(await exit).to.equal(0);
  });

  it('R08 ends with what no restart mends when there is no management token', async () => {
    const started = (unit = new StartedUnit('llmp.service', systemd.path, {}));
    writeFileSync(started.envFile, 'LISTEN_ADDR=127.0.0.1:0\n');
    const code = await started.start().exit;
    expect(started.lines('RestartPreventExitStatus')).to.deep.equal([String(code)]);
    expect(systemd.all('READY')).to.be.empty;
  });

  it(`is the dispatcher's, up as soon as it has its stream, and says how it does${WITHOUT_REDIS}`, async function () {
    if (WITHOUT_REDIS) this.skip();
    const redis = await TestRedis.start();
    try {
      const started = (unit = new StartedUnit('llmp-dispatcher.service', systemd.path, {}));
      writeFileSync(
        started.envFile,
        `REDIS_ADDR=${redis.address}\nDISPATCHER_LISTEN_ADDR=127.0.0.1:0\nMANAGEMENT_TOKEN=${MANAGEMENT_TOKEN}\n`,
      );
      const { exit } = started.start();
      await systemd.hears('READY', '1');
      await systemd.hears('STATUS', /^ready; 0 events in hand$/);
      await systemd.hears('WATCHDOG', '1');
      const before = systemd.told.length;
      expect(started.reload()).to.equal(true);
      await systemd.hears('READY', '1', before);
      started.terminate();
      await systemd.hears('STOPPING', '1');
      expect(await exit).to.equal(0);
    } finally {
      await redis.stop();
    }
  });
});
