/** The list of components (SBOM) of a release. */
import { expect } from 'chai';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lockFile, type LockFile, sbom } from '../../packaging/sbom.js';
import { temporaryFolder } from '../support/daemon.js';

interface Document {
  serialNumber: string;
  metadata: { timestamp: string; component: { name: string } };
  components: { name: string; version: string; purl?: string; hashes?: { alg: string; content: string }[] }[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

const TIME = 1_700_000_000;
const INTEGRITY = `sha512-${Buffer.alloc(64, 0xab).toString('base64')}`;

/** A staged package with two packages in folders, one inside the other, and a bundled one. */
function staged(): { folder: string; lock: LockFile } {
  const folder = temporaryFolder();
  const put = (path: string, content: unknown) => {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), JSON.stringify(content));
  };
  put('package.json', { name: 'llmp-test', version: '1.2.3', license: 'MIT' });
  put('node_modules/one/package.json', {});
  put('node_modules/one/node_modules/@scope/two/package.json', {});
  put('dist/node_modules/.components.json', [{ name: 'three', version: '3.0.0', license: 'ISC' }]);
  const locked = (version: string, more = {}) => ({ version, license: 'MIT', integrity: INTEGRITY, ...more });
  const packages = {
    '': { version: '1.2.3', dependencies: { one: '^1' }, devDependencies: { three: '^3', 'not-shipped': '^4' } },
    'node_modules/one': locked('1.0.0', { dependencies: { '@scope/two': '^2' } }),
    'node_modules/one/node_modules/@scope/two': locked('2.0.0', { dependencies: { three: '^3' } }),
    'node_modules/three': locked('3.0.0'),
    'node_modules/not-shipped': locked('4.0.0'),
  };
  return { folder, lock: { packages } };
}

describe('the SBOM', () => {
  const made = ({ folder, lock }: ReturnType<typeof staged>) => JSON.parse(sbom(folder, lock, TIME)) as Document;

  it('lists what is shipped, with the digests of the lock file, and nothing else', () => {
    const { components, metadata } = made(staged());
    expect(metadata.component.name).to.equal('llmp-test');
    expect(metadata.timestamp).to.equal('2023-11-14T22:13:20.000Z');
    expect(components.map(({ name, version }) => `${name} ${version}`)).to.deep.equal([
      'one 1.0.0',
      '@scope/two 2.0.0',
      'three 3.0.0',
      `node ${process.versions.node}`,
    ]);
    expect(components[1]?.purl).to.equal('pkg:npm/%40scope/two@2.0.0');
    expect(components[0]?.hashes).to.deep.equal([{ alg: 'SHA-512', content: 'ab'.repeat(64) }]);
  });

  it('says what depends on what, as Node.js finds packages', () => {
    const { dependencies } = made(staged());
    expect(dependencies).to.deep.equal([
      { ref: 'pkg:npm/llmp-test@1.2.3', dependsOn: ['pkg:npm/one@1.0.0', 'pkg:npm/three@3.0.0'] },
      { ref: 'pkg:npm/one@1.0.0', dependsOn: ['pkg:npm/%40scope/two@2.0.0'] },
      { ref: 'pkg:npm/%40scope/two@2.0.0', dependsOn: ['pkg:npm/three@3.0.0'] },
      { ref: 'pkg:npm/three@3.0.0', dependsOn: [] },
    ]);
  });

  it('has the same text for the same release, and another number for another', () => {
    const { folder, lock } = staged();
    expect(sbom(folder, lock, TIME)).to.equal(sbom(folder, lock, TIME));
    const changed = structuredClone(lock);
    changed.packages['node_modules/one']!.integrity = `sha512-${Buffer.alloc(64, 1).toString('base64')}`;
    const number = (of: LockFile) => made({ folder, lock: of }).serialNumber;
    expect(number(lock)).to.match(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(number(changed)).not.to.equal(number(lock));
  });

  it('is refused if a bundled package is not in the lock file', () => {
    const { folder, lock } = staged();
    delete lock.packages['node_modules/three'];
    expect(() => sbom(folder, lock, TIME)).to.throw('bundled, but not in package-lock.json: pkg:npm/three@3.0.0');
    expect(lockFile().packages).to.have.property('');
  });
});
