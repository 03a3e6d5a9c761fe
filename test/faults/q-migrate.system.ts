import { expect } from 'chai';
import { join } from 'node:path';
import { llmp } from '../cli/captured.js';
import { ended, start } from '../cli/processes.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder } from '../support/daemon.js';

describe('Q: an interrupted `migrate up`', function () {
  this.timeout(60_000);

  for (const signal of ['SIGINT', 'SIGKILL'] as const) {
    it(`Q10 ${signal} at any moment of a migration on the database itself: the next run completes it`, async () => {
      for (const afterMs of [150, 250, 300, 350, 400, 500]) {
        const dir = temporaryFolder();
        const waiting = await startDaemon({ dir, env: { AUTO_MIGRATE: 'false' } });
        await waiting.stop();
        const env = { DATABASE_URL: join(dir, 'llmp.db') };
        const child = start(['migrate', 'up', '--direct'], env);
        const timer = setTimeout(() => child.kill(signal), afterMs);
        await ended(child);
        clearTimeout(timer);
        const { exitCode, err } = await llmp('migrate up --direct', { env });
        expect({ exitCode, err }, `after ${afterMs} ms`).to.have.property('exitCode', 0);
        expect((await llmp('migrate status --direct --exit-code', { env })).exitCode).to.equal(0);
        // A daemon also accepts the schema as complete.
        const daemon = await startDaemon({ dir });
        await daemon.createProject();
        await daemon.stop();
      }
    });
  }

  it('Q10 interrupted while a daemon migrates: the daemon completes it, or the next run does', async () => {
    const daemon = await startDaemon({ env: { AUTO_MIGRATE: 'false' } });
    const env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN };
    const begun = new Promise<void>((resolve) => {
      daemon.daemon.server.once('request', () => {
        resolve();
      });
    });
    const child = start(['migrate', 'up'], env);
    await begun;
    child.kill('SIGINT');
    await ended(child);
    expect((await llmp('migrate up', { env })).exitCode).to.equal(0);
    expect((await llmp('migrate status --exit-code', { env })).exitCode).to.equal(0);
    await daemon.stop();
  });
});
