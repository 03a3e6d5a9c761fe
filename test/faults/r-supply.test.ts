import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../../..');
const textOf = (name: string) => readFileSync(join(ROOT, name), 'utf8');

interface Manifest {
  engines: { node: string };
  allowScripts: Record<string, boolean>;
}

interface Locked {
  version?: string;
  integrity?: string;
  resolved?: string;
  hasInstallScript?: boolean;
  dev?: boolean;
}

const manifest = JSON.parse(textOf('package.json')) as Manifest;
const { packages } = JSON.parse(textOf('package-lock.json')) as { packages: Record<string, Locked> };
const root = packages[''] as unknown as Manifest;

/** All installed packages; a name may be installed in several versions. */
const installed = Object.entries(packages)
  .filter(([path]) => path !== '')
  .map(([path, locked]) => ({ name: path.slice(path.lastIndexOf('node_modules/') + 13), ...locked }));
const versionsOf = (name: string) => installed.filter((it) => it.name === name).map(({ version }) => version ?? '');

const partsOf = (version: string) => version.split('.').map((part) => parseInt(part, 10));

/** For plain versions only, like those in FLOORS. */
function isAtLeast(version: string, floor: string): boolean {
  const [parts, least] = [partsOf(version), partsOf(floor)];
  const at = parts.findIndex((part, index) => part !== least[index]);
  return at === -1 || (parts[at] ?? 0) > (least[at] ?? 0);
}

// Published with stolen credentials on 2025-09-08 to steal from wallets. Each was replaced within hours.
const STOLEN: Readonly<Record<string, readonly string[]>> = {
  'ansi-regex': ['6.2.1'],
  'ansi-styles': ['6.2.2'],
  backslash: ['0.2.1'],
  chalk: ['5.6.1'],
  'chalk-template': ['1.1.1'],
  color: ['5.0.1'],
  'color-convert': ['3.1.1'],
  'color-name': ['2.0.1'],
  'color-string': ['2.1.1'],
  debug: ['4.4.2'],
  'error-ex': ['1.3.3'],
  'has-ansi': ['6.0.1'],
  'is-arrayish': ['0.3.3'],
  'simple-swizzle': ['0.2.3'],
  'slice-ansi': ['7.1.1'],
  'strip-ansi': ['7.1.1'],
  'supports-color': ['10.2.1'],
  'supports-hyperlinks': ['4.1.1'],
  'wrap-ansi': ['9.0.1'],
};

// Packages through which the worm Shai-Hulud and its successors spread. None is needed here; check the versions before you add one.
const WORM_EATEN =
  /^(?:@(?:ctrl|crowdstrike|nativescript-community|operato|art-ws|asyncapi|ensdomains|postman|posthog|zapier|tanstack|antv|duckdb)\/|(?:ngx-bootstrap|posthog-node|posthog-js|rxnt-authentication|koa2-swagger-ui)$)/;

// Below these versions there is a known problem that matters here.
const FLOORS: Readonly<Record<string, string>> = {
  'body-parser': '2.3.0',
  'path-to-regexp': '8.4.0',
  sequelize: '6.37.8',
  mysql2: '3.9.8',
  ioredis: '6.0.0',
  winston: '3.19.0',
};

describe('R: dependencies', () => {
  it('R01 every package is pinned by its content and comes from a registry', () => {
    expect(installed.length).to.be.above(100);
    for (const { name, integrity, resolved = 'https://' } of installed) {
      expect(integrity, name).to.match(/^sha512-/);
      expect(resolved, name).to.match(/^https:\/\//);
    }
  });

  it('R01 only listed packages run a script when they are installed', () => {
    const scripted = new Set(installed.filter(({ hasInstallScript }) => hasInstallScript).map(({ name }) => name));
    // Each is listed, allowed or not: npm then skips the others without a warning.
    expect([...scripted]).to.have.members(Object.keys(manifest.allowScripts));
    const allowed = Object.entries(manifest.allowScripts).filter(([, isAllowed]) => isAllowed);
    expect(allowed.map(([name]) => name)).to.deep.equal(['sqlite3']);
  });

  it('R03 no version that was published with stolen credentials is installed', () => {
    for (const [name, stolen] of Object.entries(STOLEN)) {
      expect(
        versionsOf(name).filter((version) => stolen.includes(version)),
        name,
      ).to.be.empty;
    }
    // This family is installed: the log needs it.
    for (const name of ['color', 'color-convert', 'color-string']) expect(versionsOf(name), name).not.to.be.empty;
    expect(installed.filter(({ name }) => WORM_EATEN.test(name)).map(({ name }) => name)).to.be.empty;
  });

  it('R06 the supported releases of Node are documented, and CI tests each', () => {
    expect(manifest.engines.node).to.equal('>=20.19');
    expect(root.engines).to.deep.equal(manifest.engines);
    expect(textOf('.npmrc')).to.match(/^engine-strict=true$/m);
    expect(textOf('README.md')).to.include('Node.js 20.19 or newer');
    expect(textOf('.ci/run'))
      .to.match(/^ *for version in 20 26; do$/m)
      .and.to.match(/^node24=.* -p node@24 /m);
  });

  for (const [name, floor] of Object.entries(FLOORS)) {
    it(`R07 ${name} is not older than ${floor}`, () => {
      expect(versionsOf(name)).not.to.be.empty;
      expect(versionsOf(name).filter((version) => !isAtLeast(version, floor))).to.be.empty;
    });
  }

  it('R07 versions are compared correctly', () => {
    for (const [version, floor, is] of [
      ['2.3.0', '2.3.0', true],
      ['2.10.0', '2.3.0', true],
      ['3.0.0', '2.3.1', true],
      ['2.2.9', '2.3.0', false],
      ['1.9.9', '2.3.0', false],
    ] as const) {
      expect(isAtLeast(version, floor), `${version} ${floor}`).to.equal(is);
    }
  });
});
