/** What `npm test` comes to on a machine that has Node.js and no other program. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { temporaryFolder } from '../support/daemon.js';

const ROOT = resolve(import.meta.dirname, '../../..');
const MOCHA = join(ROOT, 'node_modules/mocha/bin/mocha.js');

/** Runs test files as `npm test` does, with an empty folder as PATH. */
function run(folder: string, ...files: string[]) {
  const none = join(folder, 'none');
  mkdirSync(none);
  const { status, stdout } = spawnSync(process.execPath, [MOCHA, ...files], {
    ...{ cwd: ROOT, encoding: 'utf8', timeout: 20_000 },
    env: {
      ...process.env,
      CI: undefined,
      MOCHA_OPTIONS: undefined,
      PATH: none,
      FAILED_TESTS: join(folder, 'failed-tests'),
    },
  });
  return { status, stdout };
}

describe('a suite that skips itself', function () {
  this.timeout(30_000);

  it('runs no `after`; a suite whose second `before` skips it does, and so does one around it', () => {
    const folder = temporaryFolder();
    const file = join(folder, 'skipped.cjs');
    writeFileSync(
      file,
      `describe('outer', () => {
        after(() => console.log('ended: outer'));
        describe('skipped', () => {
          before(function () { this.skip(); });
          before(() => { throw new Error('a second before'); });
          beforeEach(() => { throw new Error('a beforeEach'); });
          afterEach(() => { throw new Error('an afterEach'); });
          after(() => { throw new Error('an after'); });
          after(() => { throw new Error('a second after'); });
          it('is skipped', () => undefined);
          describe('inner', () => {
            before(() => { throw new Error('an inner before'); });
            after(() => { throw new Error('an inner after'); });
            it('is skipped, too', () => undefined);
          });
        });
        describe('half set up', () => {
          before(() => console.log('begun: half'));
          before(function () { this.skip(); });
          after(() => console.log('ended: half'));
          it('is skipped, as well', () => undefined);
        });
        it('runs', () => undefined);
      });`,
    );
    const { status, stdout } = run(folder, file);
    expect(stdout)
      .to.match(/^ +1 passing /m)
      .and.match(/^ +3 pending/m)
      .and.include('begun: half')
      .and.include('ended: half')
      .and.include('ended: outer');
    expect(status, stdout).to.equal(0);
  });

  it('does not fail: a suite for Redis, without Redis', () => {
    const { status, stdout } = run(temporaryFolder(), 'dist/test/core/records-agree.test.js');
    expect(stdout).to.match(/^ +\d+ pending/m);
    expect(status, stdout).to.equal(0);
  });
});
