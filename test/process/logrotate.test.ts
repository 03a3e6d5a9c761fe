/** Runs the shipped logrotate configuration with the real logrotate. */
import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { llmp } from '../cli/captured.js';
import { allCopied, changesFile, linesOf } from '../support/audit-files.js';
import { startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';

const SHIPPED = readFileSync(join(import.meta.dirname, '../../../config/logrotate/llmp'), 'utf8');
const WITHOUT =
  process.env.CI !== 'true' && spawnSync('logrotate', ['--version']).error
    ? ' (skipped: logrotate is not installed)'
    : '';

describe(`logrotate${WITHOUT}`, () => {
  let daemon: TestDaemon;

  before(function () {
    if (WITHOUT) this.skip();
  });
  beforeEach(async () => {
    daemon = await startDaemon();
  });
  afterEach(() => daemon.stop());

  it('rotates the audit file under load without losing lines, also in compressed files', async function () {
    this.timeout(30_000);
    const folder = temporaryFolder();
    const own = SHIPPED.replaceAll('/var/log/llmp', daemon.dir).replace(
      /^ *su .*\n/m,
      process.getuid?.() === 0 ? '    su root root\n' : '',
    );
    const project = await daemon.createProject();
    for (let round = 1; round <= 3; round++) {
      const changes = Promise.all(Array.from({ length: 10 }, () => daemon.createToken(project.id)));
      await daemon.createToken(project.id);
      const config = join(folder, 'llmp');
      writeFileSync(config, own, { mode: 0o644 });
      const { status, stderr } = spawnSync('logrotate', ['-f', '-s', join(folder, 'state'), config], {
        encoding: 'utf8',
      });
      expect(stderr).to.equal('');
      expect(status).to.equal(0);
      await changes;
      await daemon.createToken(project.id);
      await allCopied(daemon);
      // As if it had been rotated a month ago: two rotations within a second would have the same name.
      const [newest] = readdirSync(daemon.dir).filter((name) => /^audit\.log-(?!2020)\d+-\d+$/.test(name));
      renameSync(join(daemon.dir, newest!), join(daemon.dir, `audit.log-2020010${round}-100000000${round}`));
    }
    expect(linesOf(changesFile(daemon))).not.to.be.empty;
    const names = readdirSync(daemon.dir).filter((name) => name.startsWith('audit.log-'));
    expect(names.filter((name) => name.endsWith('.gz')).length).to.equal(2);
    expect(names).to.have.length(3);
    const env = { DATABASE_URL: daemon.databasePath, AUDIT_LOG_FILE: changesFile(daemon), LLMP_OUTPUT: 'json' };
    const { exitCode, out } = await llmp('audit verify', { env });
    expect(JSON.parse(out)).to.include({ verdict: 'whole', first: 1, last: 37, records: 'compared' });
    expect(exitCode).to.equal(0);
    expect((await daemon.manage('GET', '/ready')).body).to.deep.include({ degraded: [] });
  });
});
