import { expect } from 'chai';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { WireMigrations } from '../../daemon/api/contract.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { llmp } from './captured.js';

describe('llmp migrate', () => {
  let daemon: TestDaemon;
  let env: NodeJS.ProcessEnv;

  async function withDaemon(settings: Record<string, string>): Promise<void> {
    daemon = await startDaemon({ env: settings });
    env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN };
  }
  describe('through a daemon that migrates by itself', () => {
    beforeEach(() => withDaemon({}));
    afterEach(() => daemon.stop());

    it('status shows what is applied, and is 0 also with --exit-code', async () => {
      const { exitCode, out, err } = await llmp('migrate status --exit-code', { env });
      expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: 'Up to date.\n' });
      expect(out).to.match(/^0001\S*\tapplied\t\d{4}-\d\d-\d\dT/);
    });

    it('up finds nothing to do', async () => {
      const { exitCode, err } = await llmp('migrate up', { env });
      expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: 'Nothing to do: up to date.\n' });
    });
  });

  describe('through a daemon that waits for it', () => {
    beforeEach(() => withDaemon({ AUTO_MIGRATE: 'false' }));
    afterEach(() => daemon.stop());

    it('status exits 9 with --exit-code, and 0 without', async () => {
      expect((await llmp('migrate status --exit-code', { env })).exitCode).to.equal(9);
      const { exitCode, out, err } = await llmp('migrate status --json', { env });
      expect(exitCode).to.equal(0);
      expect((JSON.parse(out) as WireMigrations).pending).not.to.deep.equal([]);
      expect(err).to.equal('');
    });

    it('up --dry-run names what is pending and applies none of it', async () => {
      const { exitCode, err } = await llmp('migrate up --dry-run', { env });
      expect(err).to.match(/^Would apply 0001.*\. Nothing was changed\.\n$/);
      expect(exitCode).to.equal(0);
      expect((await llmp('migrate status --exit-code', { env })).exitCode, 'it is still pending').to.equal(9);
    });

    it('up applies what is pending and names it', async () => {
      const { exitCode, err } = await llmp('migrate up', { env });
      expect(exitCode).to.equal(0);
      expect(err).to.match(/^Applied 0001/);
      expect((await llmp('migrate status --exit-code', { env })).exitCode).to.equal(0);
    });
  });

  describe('--direct, on the database itself', () => {
    const direct = (args: string, databasePath: string) =>
      llmp(`migrate ${args} --direct`, { env: { DATABASE_URL: databasePath } });

    it('needs no daemon and no management token', async () => {
      await withDaemon({ AUTO_MIGRATE: 'false' });
      await daemon.stop();
      expect((await direct('status --exit-code', daemon.databasePath)).exitCode).to.equal(9);
      const { exitCode, err } = await direct('up', daemon.databasePath);
      expect(err).to.match(/^Applied 0001/);
      expect(exitCode).to.equal(0);
      expect((await direct('status --exit-code', daemon.databasePath)).exitCode).to.equal(0);
    });

    it('exits with 5 when a daemon uses the database', async () => {
      await withDaemon({});
      const { exitCode, err } = await direct('up', daemon.databasePath);
      await daemon.stop();
      expect(exitCode).to.equal(5);
      expect(err).to.contain('llmp migrate up');
    });

    it('exits with 4 without a database, and creates none', async () => {
      const path = join(temporaryFolder(), 'none.db');
      expect((await direct('up', path)).exitCode).to.equal(4);
      expect(existsSync(path)).to.equal(false);
    });

    it('exits 78 when the settings are wrong', async () => {
      expect((await direct('status', 'nosql://')).exitCode).to.equal(78);
    });

    it('alone takes an --env-file', async () => {
      expect((await llmp('migrate status --env-file llmp.env')).exitCode).to.equal(2);
    });
  });
});
