import { expect } from 'chai';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { Served, type ServedOptions } from '../faults/support/served.js';
import { canaryEncryptionKey } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { DatabaseServer, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { type DaemonProcess, launchDaemon } from '../support/process.js';
import { NotifySocket, WITHOUT_NOTIFY } from './notify-socket.js';

const BLOCKED_MS = 3_000;
const STANDS_STILL = `const until = Date.now() + ${BLOCKED_MS}; while (Date.now() < until);`;
/** Watches closely: something is to be heard ten times a second. */
const WATCHED = { WATCHDOG_USEC: '200000' };

describe(`a daemon under systemd${WITHOUT_NOTIFY}`, function () {
  this.timeout(120_000);
  let systemd: NotifySocket;
  let served: Served | null = null;
  const launched: DaemonProcess[] = [];

  before(function () {
    if (WITHOUT_NOTIFY) this.skip();
  });
  beforeEach(async () => {
    systemd = await NotifySocket.open();
  });
  afterEach(async () => {
    await served?.stop();
    served = null;
    for (const each of launched.splice(0)) await each.kill();
    systemd.close();
  });

  const start = async ({ env, ...more }: ServedOptions = {}) => {
    served = await Served.start({ env: { NOTIFY_SOCKET: systemd.path, SHUTDOWN_DELAY: '0', ...env }, ...more });
    return served;
  };
  const launch = (env: Record<string, string>, options: readonly string[] = []) => {
    const daemon = launchDaemon(
      { MANAGEMENT_TOKEN, NOTIFY_SOCKET: systemd.path, SHUTDOWN_DELAY: '0', ...env },
      { options },
    );
    launched.push(daemon);
    return daemon;
  };
  const isReady = async (url: string) => (await fetch(`${url}/ready`)).status === 200;

  it('says that it starts, and that it is up when it is ready', async () => {
    const { url } = await start();
    await systemd.hears('READY', '1');
    expect(await isReady(url)).to.equal(true);
    expect(systemd.told[0]?.fields).to.deep.equal({ STATUS: 'starting' });
    expect(systemd.all('READY')).to.have.length(1);
    await systemd.hears('STATUS', /^ready; .* requests\/s; \d+ in flight; 1 active tokens$/);
  });

  it('M01 says first of all that it stops, and still serves then', async () => {
    const { url, process } = await start({ env: { SHUTDOWN_DELAY: '60s' } });
    await systemd.hears('READY');
    const before = systemd.told.length;
    process.child.kill('SIGTERM');
    await systemd.hears('STOPPING', '1');
    expect(systemd.news(before)[0]).to.deep.equal({
      STOPPING: '1',
      STATUS: 'stopping',
      EXTEND_TIMEOUT_USEC: String((60 + 30 + 30) * 1e6),
    });
    expect((await fetch(`${url}/live`)).status).to.equal(200);
  });

  it('M07 that stands still is not heard of, and is again when it goes on', async () => {
    const blocked = await start({ env: WATCHED, atSignal: STANDS_STILL });
    await systemd.hears('READY');
    const lived = () => systemd.told.filter(({ fields }) => fields.WATCHDOG === '1').map(({ atMs }) => atMs);
    blocked.signal();
    const gap = () => Math.max(...lived().map((atMs, index, all) => atMs - (all[index - 1] ?? atMs)));
    await eventually('it was not heard of for long', () => gap() >= 0.8 * BLOCKED_MS);
    const count = lived().length;
    await eventually('it is heard of again', () => lived().length > count + 3);
  });

  it('M11 that ends by itself says so', async () => {
    const crashing = await start({ atSignal: "setImmediate(() => { throw new Error('nobody foresaw this'); });" });
    await systemd.hears('READY');
    crashing.signal();
    await systemd.hears('STOPPING', '1');
    expect(await crashing.process.exit).to.equal(1);
  });

  it('M13 with wrong settings is never up, and ends with what no restart mends', async () => {
    const { exit } = launch({ LISTEN_ADDR: 'everywhere', DATABASE_URL: join(temporaryFolder(), 'llmp.db') });
    expect(await exit).to.equal(78);
    expect(systemd.all('READY')).to.be.empty;
  });

  describe('that reads its settings again', () => {
    let path: string;
    const write = (...lines: string[]) => {
      writeFileSync(path, lines.join('\n'));
    };
    beforeEach(() => {
      path = join(temporaryFolder(), 'llmp.env');
      write(`DATABASE_URL=${path}.db`, 'REQUEST_TIMEOUT=5s');
    });

    it('says so, says when it has, and how that went', async () => {
      const daemon = launch({}, ['--env-file', path]);
      const url = await daemon.listening;
      await systemd.hears('READY');
      let before = systemd.told.length;
      const hangUp = () => {
        before = systemd.told.length;
        daemon.child.kill('SIGHUP');
      };
      hangUp();
      await systemd.hears('READY', '1', before);
      const since = systemd.news(before);
      expect(since[0]).to.have.property('RELOADING', '1');
      expect(since[0]?.MONOTONIC_USEC).to.match(/^\d+$/);

      write(`DATABASE_URL=${path}.db`, 'REQUEST_TIMEOUT=5');
      hangUp();
      await systemd.hears('READY', '1', before);
      await systemd.hears('STATUS', /^ready.*; a reload failed, the settings are those from before$/, before);
      expect(daemon.logged.some((line) => line.includes('settings not reloaded'))).to.equal(true);
      expect(await isReady(url)).to.equal(true);

      write(`DATABASE_URL=${path}.db`, 'REQUEST_TIMEOUT=6s');
      hangUp();
      await systemd.hears('READY', '1', before);
      expect(systemd.all('STATUS', before).at(-1)).not.to.include('failed');
    });
  });

  describe(`whose database is a server${WITHOUT.postgres}`, () => {
    let server: DatabaseServer;
    let env: Record<string, string>;
    before(async function () {
      if (WITHOUT_NOTIFY || WITHOUT.postgres) this.skip();
      server = await DatabaseServer.start('postgres');
    });
    beforeEach(async () => {
      const DATABASE_URL = await server.newDatabase();
      env = { DB_DRIVER: 'postgres', DATABASE_URL, ENCRYPTION_KEY: canaryEncryptionKey(), AUDIT_LOG_FILE: '' };
    });
    after(() => (WITHOUT_NOTIFY || WITHOUT.postgres ? undefined : server.remove()));

    it('is not up before that comes, and says what it waits for', async () => {
      server.freeze();
      try {
        launch(env);
        await systemd.hears('STATUS', /^not ready, for want of database/);
        expect(systemd.all('READY')).to.be.empty;
      } finally {
        server.resume();
      }
      await systemd.hears('READY', '1');
      expect(systemd.all('STATUS').at(-1)).to.match(/^ready/);
    });

    it('lives on while that stands still, and says that it does without', async () => {
      launch({ ...env, ...WATCHED });
      await systemd.hears('READY');
      let before = systemd.told.length;
      server.freeze();
      try {
        await systemd.hears('STATUS', /database/, before);
        before = systemd.told.length;
        await eventually('it is heard of', () => systemd.all('WATCHDOG', before).length >= 20);
      } finally {
        server.resume();
      }
      await systemd.hears('STATUS', /^ready; /, systemd.told.length);
    });
  });

  describe('tells it by a process', () => {
    /** In place of systemd-notify. @returns the folder it is in. */
    const instead = (script: string) => {
      const folder = temporaryFolder();
      writeFileSync(join(folder, 'systemd-notify'), `#!${process.execPath}\n${script}`);
      chmodSync(join(folder, 'systemd-notify'), 0o755);
      return folder;
    };
    const PATH = process.env.PATH ?? '';

    it('that knows the socket, and no setting', async () => {
      const seen = join(temporaryFolder(), 'seen');
      const folder = instead(
        `require('fs').appendFileSync(${JSON.stringify(seen)}, JSON.stringify(process.env) + '\\n')`,
      );
      await start({ env: { PATH: `${folder}${delimiter}${PATH}` } });
      const text = () => {
        try {
          return readFileSync(seen, 'utf8');
        } catch {
          return '';
        }
      };
      await eventually('it was started', () => text().includes('\n'));
      const [line = ''] = text().split('\n');
      expect(Object.keys(JSON.parse(line) as object).sort()).to.deep.equal(['NOTIFY_SOCKET', 'PATH']);
    });

    it('without which it serves all the same, and says so once', async () => {
      const folder = instead('process.exit(3)');
      const { url, process: daemon } = await start({ env: { PATH: `${folder}${delimiter}${PATH}`, ...WATCHED } });
      const complaints = () => daemon.logged.filter((line) => line.includes('systemd cannot be told'));
      await eventually('it complains', () => complaints().length > 0);
      expect(await isReady(url)).to.equal(true);
      expect(complaints()).to.have.length(1);
    });

    it('or not at all where nobody wants to be told', async () => {
      const seen = join(temporaryFolder(), 'seen');
      const folder = instead(`require('fs').writeFileSync(${JSON.stringify(seen)}, '')`);
      const { process: daemon } = await start({
        env: { NOTIFY_SOCKET: '', PATH: `${folder}${delimiter}${PATH}`, ...WATCHED },
      });
      daemon.child.kill('SIGTERM');
      expect(await daemon.exit).to.equal(0);
      expect(() => readFileSync(seen)).to.throw('ENOENT');
    });
  });
});
