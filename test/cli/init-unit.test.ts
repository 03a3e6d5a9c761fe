import { expect } from 'chai';
import { join } from 'node:path';
import { planUnit } from '../../cli/init/unit.js';
import { temporaryFolder } from '../support/daemon.js';

describe('the unit that llmp init plans', () => {
  const warningFor = (script: string) => {
    const dir = temporaryFolder();
    const command = ['/usr/bin/node', script] as const;
    return planUnit({ dir, envFile: join(dir, 'llmp.env'), command, files: new Map(), textOf: () => undefined })
      .warning;
  };

  it('comes with a warning if the service could not read llmp', () => {
    expect(warningFor('/tmp/llmp/dist/cli/main.js')).to.match(/cannot read \/tmp\/llmp.*such as \/opt$/);
    expect(warningFor('/usr/lib/llmp/dist/cli/main.js')).to.equal(null);
  });
});
