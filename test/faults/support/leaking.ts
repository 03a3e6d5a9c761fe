/** A suite that leaks secrets. i-scan.system.ts runs it in a separate process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { canary } from '../../support/canaries.js';
import { temporaryFolder } from '../../support/daemon.js';

describe('a suite', () => {
  it('that prints a secret', () => {
    process.stdout.write(`${canary('upstream')}\n`);
    process.stderr.write(`${canary('management')}\n`);
  });

  it('that leaves one in a file', () => {
    writeFileSync(join(temporaryFolder(), 'left.db-wal'), `\0${canary('encryption')}\0`);
  });

  it('that gives one to a process', async () => {
    await once(spawn(process.execPath, ['-e', '', canary('password')]), 'close');
  });
});
