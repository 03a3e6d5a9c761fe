/**
 * A database server that lacks its last rows: restored from a backup, or a replica that took over. The audit file still receives
 * every later record.
 */
import { expect } from 'chai';
import { llmp } from '../cli/captured.js';
import { allCopied, changesFile, linesOf, rawLines } from '../support/audit-files.js';
import { canaryEncryptionKey } from '../support/canaries.js';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { write } from '../support/management.js';

for (const [kind, name] of Object.entries({ postgres: 'PostgreSQL', mysql: 'MariaDB' }) as [ServerKind, string][]) {
  describe(`the audit file and ${name} without its last rows${WITHOUT[kind]}`, function () {
    this.timeout(60_000);
    let server: DatabaseServer;
    let env: Record<string, string>;
    let daemon: TestDaemon;

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.shared(kind);
    });
    beforeEach(async () => {
      env = { DB_DRIVER: kind, DATABASE_URL: await server.newDatabase(), ENCRYPTION_KEY: canaryEncryptionKey() };
      daemon = await startDaemon({ env });
    });
    afterEach(() => daemon.stop());

    const verified = async () => {
      const { exitCode, out } = await llmp('audit verify -o json', {
        env: { ...env, AUDIT_LOG_FILE: changesFile(daemon) },
      });
      return { exitCode, ...(JSON.parse(out) as { verdict: string; anchors: string; records: string }) };
    };
    /** Removes everything committed after a sequence number. */
    const lose = async (seq: number) => {
      for (const table of ['audit', 'audit_words', 'changes'])
        await write(daemon, `DELETE FROM ${table} WHERE seq > ${seq}`);
      await write(daemon, `UPDATE change_seq SET seq = ${seq}`);
      await write(daemon, `DELETE FROM audit_anchors WHERE seq > ${seq}`);
    };
    const degraded = async () => ((await daemon.manage('GET', '/ready')).body as { degraded: string[] }).degraded;

    it('while the daemon runs and while it is stopped: one marker, and every later record', async () => {
      const project = await daemon.createProject();
      for (let n = 0; n < 2; n++) await daemon.createToken(project.id);
      await allCopied(daemon);
      await daemon.daemon.auditFiles.changes?.anchor();
      for (let n = 0; n < 2; n++) await daemon.createToken(project.id);
      await allCopied(daemon);
      await lose(3);
      // As many as were lost, so that the sequence numbers alone do not reveal it.
      for (let n = 0; n < 2; n++) await daemon.createToken(project.id);
      const path = changesFile(daemon);
      await eventually('all records are copied', () => linesOf(path).length === 8);
      const behind = () =>
        linesOf(path)
          .slice(5)
          .map(({ line, seq, id }) => [line, seq, id !== null]);
      expect(behind()).to.deep.equal([
        [6, 3, false],
        [7, 4, true],
        [8, 5, true],
      ]);
      expect(await degraded()).to.include('audit_file');
      expect(await verified()).to.include({ exitCode: 0, verdict: 'whole', records: 'compared' });

      await lose(4);
      for (let n = 0; n < 2; n++) await daemon.createToken(project.id);
      await eventually('all records are copied', () => linesOf(path).at(-1)?.seq === 6);
      await daemon.stop();
      daemon = await startDaemon({ dir: daemon.dir, env });
      await daemon.createToken(project.id);
      await allCopied(daemon);
      expect(linesOf(path).at(-1)).to.include({ seq: 7, action: 'token.create' });
      expect(await verified()).to.include({ exitCode: 0, verdict: 'whole', anchors: 'anchored' });
      expect(rawLines(path).filter((line) => line.includes('audit.database_behind'))).to.have.length(2);
    });

    it('are compared record by record', async () => {
      const project = await daemon.createProject();
      for (let n = 0; n < 4; n++) await daemon.createToken(project.id, { name: `nightly “${n}” é` });
      await allCopied(daemon);
      await daemon.stop();
      expect(await verified()).to.include({ exitCode: 0, verdict: 'whole', records: 'compared' });
      daemon = await startDaemon({ dir: daemon.dir, env });
      await write(daemon, "UPDATE audit SET actor = 'admin' WHERE seq = 3");
      expect(await verified()).to.include({ exitCode: 9, verdict: 'foreign_record', line: 3 });
    });
  });
}
