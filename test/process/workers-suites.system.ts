/** Suites of caps, revocation, cache and limits, run with three workers (test/workers.mocharc.cjs). */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';

const ROOT = new URL('../../../', import.meta.url);

describe('with three workers', function () {
  this.timeout(180_000);

  it('suites that are about one daemon pass', async () => {
    const mocha = ['node_modules/mocha/bin/mocha.js', '--config', 'test/workers.mocharc.cjs', '--no-parallel'];
    const child = spawn(process.execPath, mocha, {
      cwd: ROOT,
      env: { ...process.env, LLMP_TEST_QUICK: '1', FAILED_TESTS: undefined },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (said += text));
    await once(child, 'close');
    expect(child.exitCode, said).to.equal(0);
    expect(said).to.match(/^ +\d{2,} passing/m);
  });
});
