/** The file with the variables of `llmp demo`, in the shells that read it. */
import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { variables } from '../../cli/commands/demo-guide.js';
import { shellWord } from '../../console/escape.js';
import type { Demo } from '../../daemon/demo/demo.js';
import { temporaryFolder } from '../support/daemon.js';

const SHELLS = { sh: [], bash: ['--noprofile', '--norc'], zsh: ['-f'], fish: ['--no-config'] };

describe('the variables of llmp demo', () => {
  for (const [shell, options] of Object.entries(SHELLS)) {
    const isMissing = spawnSync(shell, ['--version']).error !== undefined;

    it(`are read by ${shell}${isMissing ? ' (skipped: there is none here)' : ''}, with a program of any name`, function () {
      if (isMissing) this.skip();
      const folder = join(temporaryFolder(), "it's a folder");
      const script = `${folder}.sh`;
      writeFileSync(script, '#!/bin/sh\nprintf "<%s>" "$LLMP_SERVER" "$TOKEN" "$@"\n');
      chmodSync(script, 0o700);
      const demo = { url: 'http://127.0.0.1:1', managementTokenFile: `${folder}/token` } as Demo;
      const file = join(temporaryFolder(), 'variables');
      writeFileSync(file, variables(demo, 'a-token', `sh ${shellWord(script)}`));
      const command = `. ${file}; llmp token list "two words"`;
      const { stdout, stderr } = spawnSync(shell, [...options, '-c', command], { encoding: 'utf8' });
      expect(stderr).to.equal('');
      expect(stdout).to.equal('<http://127.0.0.1:1><a-token><token><list><two words>');
    });
  }
});
