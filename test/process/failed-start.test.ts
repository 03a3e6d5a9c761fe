import { expect } from 'chai';
import { readdirSync, readlinkSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { loadSettings, type Settings } from '../../config/settings.js';
import { startDaemon as compose } from '../../daemon/compose.js';
import { changesFile, copied } from '../support/audit-files.js';
import { TestClock } from '../support/clock.js';
import { MANAGEMENT_TOKEN, recordingLog, startDaemon } from '../support/daemon.js';

/** The files in a folder that this process has open. */
function openIn(dir: string): string[] {
  const paths = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return ''; // The descriptor that was open to list them.
    }
  });
  return paths.filter((path) => path.startsWith(dir));
}

describe('a start that fails', () => {
  let dir: string;

  beforeEach(async function () {
    if (process.platform !== 'linux') this.skip();
    const daemon = await startDaemon();
    ({ dir } = daemon);
    await daemon.createProject();
    await daemon.stop();
  });

  function start(env: Record<string, string>, alter = (settings: Settings) => settings) {
    const { settings, reloadable } = loadSettings({
      MANAGEMENT_TOKEN,
      LISTEN_ADDR: '127.0.0.1:0',
      UPSTREAM_BASE_URL: 'http://127.0.0.1:9',
      DATABASE_URL: join(dir, 'llmp.db'),
      AUDIT_LOG_FILE: changesFile({ dir }),
      ENABLE_METRICS: 'true',
      ...env,
    });
    const { log } = recordingLog();
    return compose({ settings: alter(settings), reloadable, log, clock: new TestClock(), version: '0.1.0' });
  }

  async function expectFailed(starting: Promise<unknown>, why: RegExp): Promise<void> {
    const error = await starting.then(
      () => null,
      (thrown: unknown) => thrown as Error,
    );
    expect(error?.message).to.match(why);
    expect(openIn(dir)).to.deep.equal([]);
  }

  async function expectStarts(): Promise<void> {
    const daemon = await startDaemon({ dir });
    try {
      await daemon.createProject();
      const lines = await copied(daemon);
      expect(lines.map(({ line, action }) => [line, action])).to.deep.equal([
        [1, 'project.create'],
        [2, 'project.create'],
      ]);
    } finally {
      await daemon.stop();
    }
  }

  // Each setting is read in another phase: when the shared stores are opened, and when the forwarder and the listeners are built.
  for (const setting of ['redisAddress', 'trustedProxies', 'metricsEnabled', 'managementListenAddress'] as const) {
    it(`closes the database and the audit files after failing at ${setting}`, async () => {
      const alter = (settings: Settings) =>
        Object.defineProperty({ ...settings }, setting, {
          get: () => {
            throw new Error('unexpected');
          },
        });
      await expectFailed(start({}, alter), /^unexpected$/);
      await expectStarts();
    });
  }

  it('closes them if its address is in use', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { port } = taken.address() as AddressInfo;
    await expectFailed(start({ LISTEN_ADDR: `127.0.0.1:${port}` }), /EADDRINUSE/);
    taken.close();
    await expectStarts();
  });

  it('closes the database if another daemon uses the audit file', async () => {
    const other = await startDaemon();
    await expectFailed(start({ AUDIT_LOG_FILE: changesFile(other) }), /AUDIT_LOG_FILE: .* is in use/);
    await other.stop();
    await expectStarts();
  });

  it('closes a file that is not a database', async () => {
    const path = join(dir, 'llmp.db');
    renameSync(path, `${path}.aside`);
    writeFileSync(path, 'a text that is long enough for the first page of a database'.repeat(100));
    await expectFailed(start({}), /SQLITE_NOTADB/);
    renameSync(`${path}.aside`, path);
    await expectStarts();
  });
});
