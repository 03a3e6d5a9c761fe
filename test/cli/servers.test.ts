/** Commands that open the database themselves, on database servers. */
import { expect } from 'chai';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { realClock } from '../../daemon/process/clock.js';
import { ServerDatabase } from '../../daemon/store/sql/server-database.js';
import { canary, canaryEncryptionKey, secretsIn } from '../support/canaries.js';
import { startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { llmp } from './captured.js';

const [FIRST, SECOND] = [canaryEncryptionKey(), canaryEncryptionKey()];

for (const [kind, name] of Object.entries({ postgres: 'PostgreSQL', mysql: 'MariaDB' }) as [ServerKind, string][]) {
  describe(`llmp on ${name}${WITHOUT[kind]}`, function () {
    this.timeout(60_000);
    let server: DatabaseServer;
    let env: Record<string, string>;
    let dir: string;

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.shared(kind);
    });
    beforeEach(async () => {
      dir = temporaryFolder();
      env = {
        DB_DRIVER: kind,
        DATABASE_URL: await server.newDatabase(),
        AUDIT_LOG_FILE: join(dir, 'audit.log'),
      };
    });

    const start = (ENCRYPTION_KEY = FIRST): Promise<TestDaemon> =>
      startDaemon({ dir, env: { ...env, ENCRYPTION_KEY } });

    it('migrate --direct migrates the schema, also beside a daemon', async () => {
      expect((await llmp('migrate status --exit-code --direct', { env })).exitCode).to.equal(9);
      const { exitCode, err } = await llmp('migrate up --direct', { env });
      expect(err).to.match(/^Applied 0001/);
      expect(exitCode).to.equal(0);
      const daemon = await start();
      expect((await llmp('migrate status --exit-code --direct', { env })).exitCode).to.equal(0);
      expect((await llmp('migrate up --direct', { env })).err).to.equal('Nothing to do: up to date.\n');
      await daemon.stop();
      expect(existsSync(daemon.databasePath)).to.equal(false);
    });

    it('migrate rekey re-encrypts keys of the previous key', async () => {
      const daemon = await start();
      await daemon.createProject();
      await daemon.stop();
      const both = { ...env, ENCRYPTION_KEY: SECOND, ENCRYPTION_KEY_PREVIOUS: FIRST };
      expect((await llmp('migrate rekey', { env: both })).err).to.equal(
        'Re-encrypted 1 upstream key.\nYou can now remove ENCRYPTION_KEY_PREVIOUS.\n',
      );
      const again = await start(SECOND);
      expect((await again.manage('GET', '/manage/projects')).status).to.equal(200);
      await again.stop();
    });

    it('migrate rekey requires the key that instances share', async () => {
      const { exitCode, err } = await llmp('migrate rekey', { env: { ...env, ENCRYPTION_KEY_PREVIOUS: FIRST } });
      expect(exitCode).to.equal(78);
      expect(err).to.include(`ENCRYPTION_KEY is required with DB_DRIVER=${kind}`);
    });

    it('N09 audit verify uses the anchors of this machine, not of another one with such a file', async () => {
      const daemon = await start();
      const { id } = await daemon.createProject();
      for (let n = 0; n < 3; n++) await daemon.createToken(id);
      const { auditFiles } = daemon.daemon;
      await eventually('the records are copied', () => auditFiles.changes?.head.line === 4);
      await daemon.stop();

      const database = new ServerDatabase({
        dialect: kind,
        url: env.DATABASE_URL ?? '',
        poolSize: 1,
        clock: realClock,
      });
      const path = resolve(env.AUDIT_LOG_FILE ?? '');
      for (const chain of [path, `another-machine:${path}`]) {
        await database.transact((tx) =>
          tx.execute(
            'INSERT INTO audit_anchors (chain, line, head, seq, anchored_at) VALUES ($chain, 2, $head, 2, 1)',
            { chain, head: 'f'.repeat(64) },
          ),
        );
      }
      await database.close();
      const { exitCode, out } = await llmp('audit verify -o json', { env });
      expect(JSON.parse(out)).to.include({ verdict: 'whole', anchors: 'anchored', last: 4 });
      expect(exitCode).to.equal(0);
    });

    it('I03 exits with 69 without a server, and the message has no password', async () => {
      const daemon = await start();
      await daemon.createProject();
      await daemon.stop();
      const away = {
        ...env,
        ENCRYPTION_KEY: SECOND,
        ENCRYPTION_KEY_PREVIOUS: FIRST,
        DATABASE_URL: `${kind}://llmp:${canary('password')}@127.0.0.1:1/llmp`,
      };
      for (const command of ['migrate status --direct', 'migrate up --direct', 'migrate rekey', 'audit verify']) {
        const { exitCode, out, err } = await llmp(command, { env: away });
        expect(exitCode, command).to.equal(69);
        expect(err, command).to.include('ECONNREFUSED');
        expect(secretsIn(out + err)).to.deep.equal([]);
      }
    });

    it('exits with 78 if the certificates cannot be read', async () => {
      const DATABASE_URL = `${kind}://db/llmp?sslmode=verify-full&sslrootcert=/nowhere/ca.pem`;
      const { exitCode, err } = await llmp('migrate status --direct', { env: { ...env, DATABASE_URL } });
      expect(exitCode).to.equal(78);
      expect(err).to.include('DATABASE_URL: cannot read the certificates in /nowhere/ca.pem: ENOENT');
    });
  });
}
