import { expect } from 'chai';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { ServedDaemon, type ServedDaemonOptions } from '../faults/support/served-daemon.js';
import { canaryEncryptionKey } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { DatabaseServer, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { type DaemonProcess, launchDaemon } from '../support/process.js';
import { NotifySocket, WITHOUT_NOTIFY } from './notify-socket.js';

const BLOCKED_MS = 3_000;
const BLOCK_EVENT_LOOP = `const until = Date.now() + ${BLOCKED_MS}; while (Date.now() < until);`;
/** A short watchdog timeout: ten messages per second. */
const WATCHED = { WATCHDOG_USEC: '200000' };

describe(`a daemon under systemd${WITHOUT_NOTIFY}`, function () {
  this.timeout(120_000);
  let systemd: NotifySocket;
  let served: ServedDaemon | null = null;
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

  const start = async ({ env, ...more }: ServedDaemonOptions = {}) => {
    served = await ServedDaemon.start({ env: { NOTIFY_SOCKET: systemd.path, SHUTDOWN_DELAY: '0', ...env }, ...more });
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

  it('reports its start, and READY when it is ready', async () => {
    const { url } = await start();
    await systemd.waitFor('READY', '1');
    expect(await isReady(url)).to.equal(true);
    expect(systemd.received[0]?.fields).to.deep.equal({ STATUS: 'starting' });
    expect(systemd.all('READY')).to.have.length(1);
    await systemd.waitFor('STATUS', /^ready; .* requests\/s; \d+ in flight; 1 active tokens$/);
  });

  it('M01 first reports its shutdown, and still serves then', async () => {
    const { url, process } = await start({ env: { SHUTDOWN_DELAY: '60s' } });
    await systemd.waitFor('READY');
    const before = systemd.received.length;
    process.child.kill('SIGTERM');
    await systemd.waitFor('STOPPING', '1');
    expect(systemd.withoutStatus(before)[0]).to.deep.equal({
      STOPPING: '1',
      STATUS: 'stopping',
      EXTEND_TIMEOUT_USEC: String((60 + 30 + 30) * 1e6),
    });
    expect((await fetch(`${url}/live`)).status).to.equal(200);
  });

  it('M07 does not reset the watchdog while its event loop is blocked, and does again afterwards', async () => {
    const blocked = await start({ env: WATCHED, atSignal: BLOCK_EVENT_LOOP });
    await systemd.waitFor('READY');
    const lived = () => systemd.received.filter(({ fields }) => fields.WATCHDOG === '1').map(({ atMs }) => atMs);
    blocked.signal();
    const gap = () => Math.max(...lived().map((atMs, index, all) => atMs - (all[index - 1] ?? atMs)));
    await eventually('a long time without a watchdog message', () => gap() >= 0.8 * BLOCKED_MS);
    const count = lived().length;
    await eventually('watchdog messages again', () => lived().length > count + 3);
  });

  it('M11 reports its shutdown after a crash', async () => {
    const crashing = await start({ atSignal: "setImmediate(() => { throw new Error('unexpected'); });" });
    await systemd.waitFor('READY');
    crashing.signal();
    await systemd.waitFor('STOPPING', '1');
    expect(await crashing.process.exit).to.equal(1);
  });

  it('M13 with invalid settings never reports READY, and exits with a code that prevents restarts', async () => {
    const { exit } = launch({ LISTEN_ADDR: 'everywhere', DATABASE_URL: join(temporaryFolder(), 'llmp.db') });
    expect(await exit).to.equal(78);
    expect(systemd.all('READY')).to.be.empty;
  });

  describe('that reloads its settings', () => {
    let path: string;
    const write = (...lines: string[]) => {
      writeFileSync(path, lines.join('\n'));
    };
    beforeEach(() => {
      path = join(temporaryFolder(), 'llmp.env');
      write(`DATABASE_URL=${path}.db`, 'REQUEST_TIMEOUT=5s');
    });

    it('reports the reload, its end, and its result', async () => {
      const daemon = launch({}, ['--env-file', path]);
      const url = await daemon.listening;
      await systemd.waitFor('READY');
      let before = systemd.received.length;
      const hangUp = () => {
        before = systemd.received.length;
        daemon.child.kill('SIGHUP');
      };
      hangUp();
      await systemd.waitFor('READY', '1', before);
      const since = systemd.withoutStatus(before);
      expect(since[0]).to.have.property('RELOADING', '1');
      expect(since[0]?.MONOTONIC_USEC).to.match(/^\d+$/);

      write(`DATABASE_URL=${path}.db`, 'REQUEST_TIMEOUT=5');
      hangUp();
      await systemd.waitFor('READY', '1', before);
      await systemd.waitFor('STATUS', /^ready.*; the last reload failed, previous settings are in force$/, before);
      expect(daemon.logged.some((line) => line.includes('settings not reloaded'))).to.equal(true);
      expect(await isReady(url)).to.equal(true);

      write(`DATABASE_URL=${path}.db`, 'REQUEST_TIMEOUT=6s');
      hangUp();
      await systemd.waitFor('READY', '1', before);
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

    it('does not report READY before the database is available, and reports what it waits for', async () => {
      server.freeze();
      try {
        launch(env);
        await systemd.waitFor('STATUS', /^not ready \(missing: database\)/);
        expect(systemd.all('READY')).to.be.empty;
      } finally {
        server.resume();
      }
      await systemd.waitFor('READY', '1');
      expect(systemd.all('STATUS').at(-1)).to.match(/^ready/);
    });

    it('resets the watchdog while the database hangs, and reports that it is degraded', async () => {
      launch({ ...env, ...WATCHED });
      await systemd.waitFor('READY');
      let before = systemd.received.length;
      server.freeze();
      try {
        await systemd.waitFor('STATUS', /database/, before);
        before = systemd.received.length;
        await eventually('20 watchdog messages', () => systemd.all('WATCHDOG', before).length >= 20);
      } finally {
        server.resume();
      }
      await systemd.waitFor('STATUS', /^ready; /, systemd.received.length);
    });
  });

  describe('notifies systemd by a child process', () => {
    /** Writes a replacement of systemd-notify. @returns its folder. */
    const instead = (script: string) => {
      const folder = temporaryFolder();
      writeFileSync(join(folder, 'systemd-notify'), `#!${process.execPath}\n${script}`);
      chmodSync(join(folder, 'systemd-notify'), 0o755);
      return folder;
    };
    const PATH = process.env.PATH ?? '';

    it('whose environment has the socket, and no settings', async () => {
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
      await eventually('the program was started', () => text().includes('\n'));
      const [line = ''] = text().split('\n');
      expect(Object.keys(JSON.parse(line) as object).sort()).to.deep.equal(['NOTIFY_SOCKET', 'PATH']);
    });

    it('and still serves if that fails, which it logs once', async () => {
      const folder = instead('process.exit(3)');
      const { url, process: daemon } = await start({ env: { PATH: `${folder}${delimiter}${PATH}`, ...WATCHED } });
      const complaints = () => daemon.logged.filter((line) => line.includes('cannot notify systemd'));
      await eventually('a warning in the log', () => complaints().length > 0);
      expect(await isReady(url)).to.equal(true);
      expect(complaints()).to.have.length(1);
    });

    it('only if systemd supervises it', async () => {
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
