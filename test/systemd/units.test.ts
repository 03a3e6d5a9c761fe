import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { LLMP, shippedFiles } from '../../config/systemd/shipped.js';
import { unitText } from '../../config/systemd/unit.js';
import { temporaryFolder } from '../support/daemon.js';
import { ask, WITHOUT_SYSTEMD } from './analyze.js';

const FOLDER = resolve(import.meta.dirname, '../../../config/systemd');
const isUnit = (name: string) => name.endsWith('.service');

/** Writes all units to files, with commands that exist. @returns their paths by unit name. */
function unitsIn(dir: string): Map<string, string> {
  const llmp = join(dir, 'llmp');
  writeFileSync(llmp, '#!/bin/sh\n');
  chmodSync(llmp, 0o755);
  const made = (needsLowPort: boolean) =>
    unitText({ command: [process.execPath, llmp], envFile: '/etc/llmp.env', files: new Map(), needsLowPort });
  const texts = new Map([
    ...[...shippedFiles()].filter(([name]) => isUnit(name)),
    ['init.service', made(false)],
    ['init-at-a-low-port.service', made(true)],
  ]);
  return new Map(
    [...texts].map(([name, text]) => {
      const path = join(dir, name);
      writeFileSync(path, text.replaceAll(LLMP, llmp));
      return [name, path];
    }),
  );
}

describe('the files for systemd in the package', () => {
  it('are what `npm run docs` writes', () => {
    for (const [name, text] of shippedFiles()) expect(readFileSync(join(FOLDER, name), 'utf8'), name).to.equal(text);
  });

  it('are in the package', () => {
    const { files } = JSON.parse(readFileSync(resolve(FOLDER, '../../package.json'), 'utf8')) as { files: string[] };
    expect(files).to.include('config/systemd/llmp*');
    for (const name of shippedFiles().keys()) expect(name).to.match(/^llmp/);
  });

  it('give each instance its own settings and folders', () => {
    const instance = shippedFiles().get('llmp@.service') ?? '';
    expect(instance).to.contain('--env-file /etc/llmp/llmp-%i.env\n');
    for (const folder of ['State', 'Logs', 'Runtime']) expect(instance).to.contain(`${folder}Directory=llmp-%i\n`);
  });

  it('give the dispatcher neither the management token nor the encryption key', () => {
    const dispatcher = shippedFiles().get('llmp-dispatcher.service') ?? '';
    expect(dispatcher).not.to.match(/management-token|encryption-key|database-url/);
    expect(dispatcher).to.contain('User=llmp-dispatcher\n');
  });
});

describe(`R08 a unit of llmp${WITHOUT_SYSTEMD}`, function () {
  this.timeout(60_000);
  let units: Map<string, string>;
  before(function () {
    if (WITHOUT_SYSTEMD) this.skip();
    units = unitsIn(temporaryFolder());
  });

  for (const name of ['llmp.service', 'llmp@.service', 'llmp-dispatcher.service', 'init.service']) {
    it(`R08 ${name} is valid for systemd`, () => {
      const path = units.get(name) ?? '';
      // A template is verified as one of its instances.
      const verified = ask('systemd-analyze', 'verify', '--man=no', path.replace('@.', '@1.'));
      expect(verified).to.deep.equal({ status: 0, output: '' });
    });
  }

  for (const name of [
    'llmp.service',
    'llmp@.service',
    'llmp-dispatcher.service',
    'init.service',
    'init-at-a-low-port.service',
  ]) {
    it(`R08 ${name} has an exposure level of 2.0 or less`, () => {
      const path = units.get(name) ?? '';
      const { status, output } = ask(
        'systemd-analyze',
        'security',
        '--offline=true',
        '--threshold=20',
        '--no-pager',
        path,
      );
      expect(status, output).to.equal(0);
    });

    it(`R08 ${name} has all sandbox options that V8 allows`, () => {
      const lines = readFileSync(units.get(name) ?? '', 'utf8').split('\n');
      expect(lines).to.include.members([
        'NoNewPrivileges=yes',
        'ProtectSystem=strict',
        'PrivateTmp=yes',
        'RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX',
        'SystemCallFilter=@system-service',
        'LimitCORE=0',
        'UMask=0077',
        `CapabilityBoundingSet=${name.includes('low-port') ? 'CAP_NET_BIND_SERVICE' : ''}`,
      ]);
      expect(lines.join('\n'))
        .to.match(/^ProtectHome=/m)
        .and.not.to.match(/^MemoryDenyWriteExecute=/m);
    });
  }
});

describe(`the steps of docs/operate/systemd.md${WITHOUT_SYSTEMD}`, () => {
  it('install the units, their user and their folders on a machine that has none', function () {
    if (WITHOUT_SYSTEMD) this.skip();
    const page = readFileSync(resolve(FOLDER, '../../docs/operate/systemd.md'), 'utf8');
    const block = /^<!-- runs: systemd -->$[^]*?```sh\n([^]*?)```/m.exec(page)?.[1] ?? '';
    const root = temporaryFolder();
    mkdirSync(join(root, 'etc/systemd/system'), { recursive: true }); // As on Debian, where /etc/sysusers.d does not exist.
    mkdirSync(join(root, 'etc/tmpfiles.d'));
    const steps = block
      .split('\n')
      .filter((line) => !line.startsWith('systemctl '))
      .join('\n')
      .replaceAll(' /etc/', ` ${root}/etc/`)
      .replaceAll('systemd-sysusers', `systemd-sysusers --root=${root}`)
      .replaceAll('systemd-tmpfiles --create', `systemd-tmpfiles --root=${root} --create`)
      .replaceAll(' -g llmp', ''); // This machine has no such group.
    const { status, stderr } = spawnSync('sh', ['-ec', steps], { cwd: resolve(FOLDER, '../..'), encoding: 'utf8' });
    expect(status, stderr).to.equal(0);
    for (const unit of ['llmp.service', 'llmp@.service', 'llmp-dispatcher.service']) {
      expect(readFileSync(join(root, 'etc/systemd/system', unit), 'utf8')).to.equal(shippedFiles().get(unit));
    }
    expect(readFileSync(join(root, 'etc/passwd'), 'utf8')).to.match(/^llmp:/m);
    expect(readFileSync(join(root, 'etc/llmp/credentials/management-token'), 'utf8')).to.match(/^\S{32}\n$/);
    expect(existsSync(join(root, 'etc/llmp/llmp.env'))).to.equal(true);

    // When the steps are repeated for a new release, they preserve the settings and the token.
    const preserved = ['llmp.env', 'credentials/management-token'].map((name) => join(root, 'etc/llmp', name));
    for (const path of preserved) writeFileSync(path, 'of the operator\n');
    expect(spawnSync('sh', ['-ec', steps], { cwd: resolve(FOLDER, '../..') }).status).to.equal(0);
    for (const path of preserved) expect(readFileSync(path, 'utf8')).to.equal('of the operator\n');
  });

  it('say how much heap the limit of the units leaves', () => {
    expect(shippedFiles().get('llmp.service')).to.include('MemoryHigh=1G\n');
    const page = readFileSync(resolve(FOLDER, '../../docs/operate/systemd.md'), 'utf8');
    expect(page).to.match(/`MemoryHigh=1G`[^]*?550 MB of heap/);
    // The exposure levels that systemd 252 and 257 report for the loaded unit. Offline they cannot check everything, and report 0.1 more.
    expect(page).to.match(/`systemd-analyze security llmp`: 1\.3\)/);
  });
});

describe(`the user and the folders of the units${WITHOUT_SYSTEMD}`, () => {
  let root: string;
  before(function () {
    if (WITHOUT_SYSTEMD) this.skip();
    root = temporaryFolder();
    mkdirSync(join(root, 'etc'));
  });

  it('are made by systemd-sysusers', () => {
    const { status, output } = ask('systemd-sysusers', `--root=${root}`, '--dry-run', join(FOLDER, 'llmp.sysusers'));
    expect(status, output).to.equal(0);
    expect(output)
      .to.match(/user 'llmp'/)
      .and.to.match(/user 'llmp-dispatcher'/);
  });
});
