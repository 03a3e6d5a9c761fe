import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import ts from 'typescript';

const ROOT = resolve(import.meta.dirname, '../../..');
const require = createRequire(import.meta.url);

interface Manifest {
  version: string;
  exports?: unknown;
  dependencies: Record<string, string>;
}

const manifestAt = (folder: string) => JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Manifest;

/** All that the program imports which is neither Node's nor ours. */
function packagesImported(): Set<string> {
  const files = ['config', 'migrations', 'daemon', 'console', 'cli', 'tui'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.tsx?$/.test(file))
      .map((file) => join(ROOT, folder, file)),
  );
  const specifiers = files.flatMap((file) =>
    ts.preProcessFile(readFileSync(file, 'utf8')).importedFiles.map(({ fileName }) => fileName),
  );
  return new Set(specifiers.filter((it) => !it.startsWith('.') && !it.startsWith('node:')));
}

describe('guard rails', () => {
  // A package that declares `exports` keeps what it offers by paths of their own. The inner files of one that does not, such as
  // undici/lib/dispatcher/client.js, may move or change with any release, also with a patch that `^` or `~` would take.
  it('a package whose inner files are imported is pinned to one release, in package.json and in the lock', () => {
    const { dependencies } = manifestAt('.');
    const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, Manifest | undefined>;
    };
    const inner = [...packagesImported()].flatMap((specifier) => {
      const [, name, path] = /^((?:@[^/]+\/)?[^/]+)(\/.+)?$/.exec(specifier) ?? [];
      return name === undefined || path === undefined ? [] : [name];
    });
    const pinned = [...new Set(inner)].filter((name) => manifestAt(`node_modules/${name}`).exports === undefined);
    expect(pinned).to.include('undici');
    for (const name of pinned) {
      const { version } = manifestAt(`node_modules/${name}`);
      expect(dependencies[name], `package.json: ${name}`).to.equal(version);
      expect(packages['']?.dependencies[name], `package-lock.json: ${name}`).to.equal(version);
      expect(packages[`node_modules/${name}`]?.version, `package-lock.json: ${name}`).to.equal(version);
    }
  });

  // What is run with `.only` hides every other test, and a build that is green says nothing then.
  it('no run of the tests, under whatever release of Node, takes a test that says .only', () => {
    for (const config of [
      '.mocharc.json',
      'test/quick.mocharc.cjs',
      'test/newer-node.mocharc.cjs',
      'test/system.mocharc.cjs',
    ]) {
      expect(require(join(ROOT, config)), config).to.include({ 'forbid-only': true });
    }
  });
});
