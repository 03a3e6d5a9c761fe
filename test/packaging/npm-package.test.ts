import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { readPackageName } from '../../config/version.js';
import { loadNative, NATIVE_FILE, platformName } from '../../daemon/store/sqlite-native.js';
import { bundledComponents, shippedVulnerabilities } from '../../packaging/audited.js';
import { sourceOf } from '../../packaging/build-info.js';
import { BUNDLED_PACKAGES } from '../../packaging/bundled-packages.js';
import { isNeeded, productionDependencies } from '../../packaging/stage.js';
import { temporaryFolder } from '../support/daemon.js';

const ROOT = resolve(import.meta.dirname, '../../..');
const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');

interface Manifest {
  name: string;
  private?: boolean;
  scripts: Record<string, string>;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
}
const manifest = JSON.parse(textOf('package.json')) as Manifest;

/** The packages that the project is built on. */
const CHOSEN = ['express', 'http-proxy', 'sequelize', 'pg', 'mysql2', 'ioredis', 'inquirer', 'prom-client', 'winston'];
const MAX_OTHERS = 10;

describe('the npm package, before it is installed', () => {
  it('runs no script when it is installed', () => {
    expect(manifest.private).to.equal(undefined);
    for (const name of ['preinstall', 'install', 'postinstall', 'prepare'])
      expect(manifest.scripts).not.to.have.property(name);
    const { packages } = JSON.parse(textOf('package-lock.json')) as {
      packages: Record<string, { hasInstallScript?: boolean }>;
    };
    const scripted = productionDependencies(ROOT).filter(({ path }) => packages[path]?.hasInstallScript);
    expect(scripted).to.deep.equal([]);
  });

  it('depends on few packages', () => {
    const others = Object.keys(manifest.dependencies).filter((name) => !CHOSEN.includes(name));
    expect(others.length).to.be.within(1, MAX_OTHERS);
    expect(Object.keys(manifest.dependencies)).to.include.members(CHOSEN);
  });

  it('contains the bundled packages, which npm does not install, in the versions of the lock file', () => {
    const { packages } = JSON.parse(textOf('package-lock.json')) as { packages: Record<string, { version: string }> };
    const components = new Map(bundledComponents(ROOT).map(({ name, version }) => [name, version]));
    for (const name of BUNDLED_PACKAGES) {
      expect(manifest.devDependencies).to.have.property(name);
      expect(manifest.dependencies).not.to.have.property(name);
      const { version } = JSON.parse(textOf(`dist/node_modules/${name}/package.json`)) as { version: string };
      expect(version, name).to.equal(packages[`node_modules/${name}`]?.version);
      expect(components.get(name), name).to.equal(version);
    }
    const licenses = textOf('dist/node_modules/LICENSES.txt');
    for (const [name, version] of components) expect(licenses).to.include(`${name} ${version} (`);
  });

  // Two builds of a commit are equal, in whatever folders they are made.
  it('contains no path of the folder in which it was built', () => {
    const bundles = readdirSync(join(ROOT, 'dist'), { recursive: true, encoding: 'utf8' }).filter((file) =>
      /^(?:node_modules\/.*\.js|cli\/llmp.*\.cjs|build\.json)$/.test(file),
    );
    expect(bundles.length).to.be.at.least(BUNDLED_PACKAGES.length);
    const naming = bundles.filter((file) => {
      const text = textOf(join('dist', file));
      return text.includes(ROOT) || /(?:\.\.\/)+[\w/]*node_modules\//.test(text);
    });
    expect(naming).to.deep.equal([]);
  });

  it('has a page that says what each dependency is for', () => {
    const [, installed = '', bundled = ''] = textOf('docs/reference/dependencies.md').split(/^## .*$/m);
    const namesIn = (part: string) =>
      [...part.matchAll(/^\| `([^`]+)` +\| (\S[^|]{8,}\S) *\|/gm)].map(([, name = '']) => name);
    expect(namesIn(installed)).to.deep.equal(Object.keys(manifest.dependencies).sort());
    expect(namesIn(bundled)).to.deep.equal(BUNDLED_PACKAGES);
  });

  it('has the same name everywhere', () => {
    expect(readPackageName()).to.equal(manifest.name);
    const pages = ['README.md', ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })]
      .filter((page) => page.endsWith('.md'))
      .map((page) => textOf(page === 'README.md' ? page : join('docs', page)));
    const names = pages.flatMap((text) => [...text.matchAll(/npm i(?:nstall)? (?:-g|--global) \.\/([\w-]+?)-\d/g)]);
    expect(names.length).to.be.at.least(1);
    for (const [line, name] of names) expect(name, line).to.equal(manifest.name);
  });

  it('leaves out of other packages what no program reads, and keeps their licenses', () => {
    for (const path of ['LICENSE', 'license.md', 'lib/index.js', 'lib/test/index.js', 'package.json', 'data.json'])
      expect(isNeeded(path), path).to.equal(true);
    for (const path of ['README.md', 'lib/index.js.map', 'types/index.d.ts', 'test', 'node_modules', '.github'])
      expect(isNeeded(path), path).to.equal(false);
  });

  it('is audited with what is bundled', () => {
    const vulnerability = (name: string, severity: string, nodes = [`node_modules/${name}`]) => ({
      name,
      severity,
      nodes,
    });
    const vulnerabilities = {
      pg: vulnerability('pg', 'high'),
      zod: vulnerability('zod', 'critical'),
      express: vulnerability('express', 'moderate'),
      mocha: vulnerability('mocha', 'critical'),
    };
    const found = shippedVulnerabilities(
      { vulnerabilities },
      new Set(['node_modules/pg', 'node_modules/express']),
      new Set(['zod']),
    );
    expect(found).to.deep.equal(['pg: high', 'zod: critical']);
    expect(shippedVulnerabilities({}, new Set(), new Set())).to.deep.equal([]);
  });
});

describe('the native module of SQLite', () => {
  interface Native {
    Database: new () => object;
    VERSION?: string;
    unavailable?: string;
  }
  const ADVICE = 'Use PostgreSQL or MySQL (DATABASE_URL), or build llmp on this machine';
  const load = (folder: string, platform?: string) => loadNative(folder, platform) as Native;

  it('is loaded from the folder of the platform', () => {
    const { VERSION, unavailable } = load(join(ROOT, 'dist/native'));
    expect(VERSION).to.match(/^3\.\d+\.\d+$/);
    expect(unavailable).to.equal(undefined);
  });

  it('is the one of the package that llmp imports', () => {
    const { VERSION } = createRequire(join(ROOT, 'dist/x.js'))('sqlite3') as Native;
    expect(VERSION).to.equal(load(join(ROOT, 'dist/native')).VERSION);
  });

  it('is missing for a platform: one sentence says what is there and what to do', () => {
    const folder = temporaryFolder();
    const nothing = load(folder, 'sunos-sparc');
    expect(nothing.unavailable).to.equal(
      `SQLite cannot be used: this installation has no native module for sunos-sparc. ${ADVICE}`,
    );
    expect(() => new nothing.Database()).to.throw(nothing.unavailable);
    for (const name of ['linux-x64', 'darwin-arm64']) mkdirSync(join(folder, name));
    expect(load(folder, 'sunos-sparc').unavailable).to.equal(
      `SQLite cannot be used: this installation has no native module for sunos-sparc, only for darwin-arm64, linux-x64. ${ADVICE}`,
    );
  });

  it('cannot be loaded: the sentence says why; the next candidate is tried', () => {
    const folder = temporaryFolder();
    const platform = platformName();
    mkdirSync(join(folder, platform));
    writeFileSync(join(folder, platform, NATIVE_FILE), 'not a library');
    const path = join(folder, platform, NATIVE_FILE);
    expect(load(folder).unavailable).to.match(/^SQLite cannot be used: (\S+) cannot be loaded: .*\. Use PostgreSQL/);
    expect(load(folder).unavailable).to.include(path);
    cpSync(join(ROOT, 'dist/native', platform), join(folder, `${platform}-musl`), { recursive: true });
    expect(load(folder).VERSION).to.match(/^3\./);
  });

  // A lock of another kind than that of SQLite.
  it('is not needed to lock an audit file on Linux', function () {
    if (process.platform !== 'linux') this.skip();
    const copy = join(temporaryFolder(), 'llmp');
    cpSync(join(ROOT, 'dist'), join(copy, 'dist'), {
      recursive: true,
      filter: (file) => !/dist\/(?:test|native)(?:\/|$)/.test(file),
    });
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    writeFileSync(join(copy, 'package.json'), textOf('package.json'));
    const program = `
      const { lockPath, PathInUse } = await import('./dist/daemon/store/lock.js');
      const release = await lockPath('audit.jsonl');
      const refused = await lockPath('audit.jsonl').then(() => false, (error) => error instanceof PathInUse);
      await release();
      await (await lockPath('audit.jsonl'))();
      console.log(JSON.stringify({ refused }));`;
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      cwd: copy,
      encoding: 'utf8',
    });
    expect({ stdout, stderr }).to.deep.equal({ stdout: '{"refused":true}\n', stderr: '' });
    expect(statSync(join(copy, 'audit.jsonl.lock')).mode & 0o777).to.equal(0o600);
  });
});

describe('where a build comes from', () => {
  const git = (folder: string, ...args: string[]) => {
    const identity = ['-c', 'user.name=a', '-c', 'user.email=a@example.com'];
    const env = { PATH: process.env.PATH, HOME: folder, GIT_COMMITTER_DATE: '2030-01-02T03:04:05Z' };
    const { status, stderr } = spawnSync('git', ['-C', folder, ...identity, ...args], { env, encoding: 'utf8' });
    expect(status, stderr).to.equal(0);
  };

  it('is the commit and its time, SOURCE_DATE_EPOCH if that is set, and whether files were changed', function () {
    if (process.env.CI !== 'true' && spawnSync('git', ['--version']).error) this.skip();
    const folder = temporaryFolder();
    expect(sourceOf(folder, undefined)).to.deep.equal({ commit: null, builtAt: null });
    expect(sourceOf(folder, '0')).to.deep.equal({ commit: null, builtAt: '1970-01-01T00:00:00Z' });
    git(folder, 'init', '--quiet');
    writeFileSync(join(folder, 'a'), '1');
    git(folder, 'add', 'a');
    git(folder, 'commit', '--quiet', '--message', 'a');
    const { commit, builtAt } = sourceOf(folder, undefined);
    expect(commit).to.match(/^[0-9a-f]{40}$/);
    expect(builtAt).to.equal('2030-01-02T03:04:05Z');
    expect(sourceOf(folder, '1900000000')).to.deep.equal({ commit, builtAt: '2030-03-17T17:46:40Z' });
    writeFileSync(join(folder, 'a'), '2');
    expect(sourceOf(folder, undefined).commit).to.equal(`${commit ?? ''}-dirty`);
    expect(() => sourceOf(folder, 'yesterday')).to.throw('SOURCE_DATE_EPOCH must be a number of seconds');
    // Sources in a folder of another repository.
    mkdirSync(join(folder, 'inner'));
    expect(sourceOf(join(folder, 'inner'), undefined)).to.deep.equal({ commit: null, builtAt: null });
  });
});
