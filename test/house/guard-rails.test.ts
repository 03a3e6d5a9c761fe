import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import ts from 'typescript';

const ROOT = resolve(import.meta.dirname, '../../..');

interface Manifest {
  version: string;
  exports?: unknown;
  dependencies: Record<string, string>;
}

const manifestAt = (folder: string) => JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Manifest;

/** All packages that the program imports, without Node's own modules. */
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
  // A package that declares `exports` keeps the paths that it offers. The inner files of a package that does not, such as
  // undici/lib/dispatcher/client.js, may move or change with any release, even a patch that `^` or `~` would accept.
  it('a package whose inner files are imported is pinned to one release, in package.json and in the lockfile', () => {
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
});
