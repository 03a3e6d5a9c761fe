/** The list of components (SBOM) of a release. */
import { expect } from 'chai';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeRuntime } from '../../packaging/node-runtime.js';
import { lockedSbom, lockFile, type LockFile, nameAt, sbom, type Sbom } from '../../packaging/sbom.js';
import { TARGETS } from '../../packaging/targets.js';
import { temporaryFolder } from '../support/daemon.js';

const TIME = 1_700_000_000;

/** A staged package with two packages in folders, one inside the other, and a bundled one; and what npm says about all. */
function staged(): { folder: string; lock: LockFile; npm: Sbom } {
  const folder = temporaryFolder();
  const put = (path: string, content: unknown) => {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), JSON.stringify(content));
  };
  put('package.json', { name: 'llmp-test', version: '1.2.3', license: 'MIT' });
  put('node_modules/one/package.json', {});
  put('node_modules/one/node_modules/@scope/two/package.json', {});
  put('dist/node_modules/.components.json', [{ name: 'three', version: '3.0.0', license: 'ISC' }]);
  const packages = {
    '': { version: '1.2.3' },
    'node_modules/one': { version: '1.0.0' },
    'node_modules/one/node_modules/@scope/two': { version: '2.0.0' },
    'node_modules/three': { version: '3.0.0' },
    'node_modules/not-shipped': { version: '4.0.0' },
  };
  const component = (name: string, version: string) => ({
    ...{ 'bom-ref': `${name}@${version}`, type: 'library', name, version, scope: 'optional' },
    properties: [{ name: 'cdx:npm:package:development', value: 'true' }],
  });
  const npm: Sbom = {
    serialNumber: 'urn:uuid:random',
    metadata: { timestamp: 'now', component: component('the name of the folder', '1.2.3') },
    components: [
      ...[component('one', '1.0.0'), component('@scope/two', '2.0.0')],
      ...[component('three', '3.0.0'), component('not-shipped', '4.0.0')],
    ],
    dependencies: [
      { ref: 'the name of the folder@1.2.3', dependsOn: ['one@1.0.0', 'not-shipped@4.0.0', 'three@3.0.0'] },
      { ref: 'one@1.0.0', dependsOn: ['@scope/two@2.0.0'] },
      { ref: 'not-shipped@4.0.0', dependsOn: [] },
    ],
  };
  return { folder, lock: { packages }, npm };
}

describe('the SBOM', () => {
  const made = ({ folder, lock, npm }: ReturnType<typeof staged>) => JSON.parse(sbom(folder, lock, TIME, npm)) as Sbom;

  it('lists what is shipped, also what the build bundles, and nothing else', () => {
    const { components, metadata, dependencies } = made(staged());
    const nodeVersion = nodeRuntime(TARGETS[0]!).version;
    expect(metadata.component).to.include({ name: 'llmp-test', type: 'application' });
    expect(metadata.timestamp).to.equal('2023-11-14T22:13:20.000Z');
    expect(components.map(({ name, version, scope }) => [name, version, scope])).to.deep.equal([
      ['one', '1.0.0', 'required'],
      ['@scope/two', '2.0.0', 'required'],
      ['three', '3.0.0', 'required'],
      ['node', nodeVersion, undefined],
      ['node', nodeVersion, undefined],
    ]);
    expect(dependencies).to.deep.equal([
      { ref: 'the name of the folder@1.2.3', dependsOn: ['one@1.0.0', 'three@3.0.0'] },
      { ref: 'one@1.0.0', dependsOn: ['@scope/two@2.0.0'] },
    ]);
  });

  it('has the checksum of the Node.js for each architecture, as the lock file pins it', () => {
    const { components } = made(staged()) as unknown as {
      components: { purl?: string; hashes: { alg: string; content: string }[] }[];
    };
    for (const target of TARGETS) {
      const { version, integrity } = nodeRuntime(target);
      expect(version).to.match(/^24\./);
      const found = components.find(({ purl }) => purl === `pkg:npm/node-linux-${target.arch}@${version}`);
      const hashes = found?.hashes.map(({ alg, content }) => [alg, Buffer.from(content, 'hex').toString('base64')]);
      expect(hashes).to.deep.equal([['SHA-512', integrity.replace('sha512-', '')]]);
    }
  });

  it('has the same text for the same release, and another number for another', () => {
    const { folder, lock, npm } = staged();
    const other = { ...npm, serialNumber: 'another', metadata: { ...npm.metadata, timestamp: 'later' } };
    expect(sbom(folder, lock, TIME, other)).to.equal(sbom(folder, lock, TIME, npm));
    const changed = structuredClone(npm);
    changed.components[0]!.type = 'framework';
    const number = (of: Sbom) => made({ folder, lock, npm: of }).serialNumber;
    expect(number(npm)).to.match(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(number(changed)).not.to.equal(number(npm));
  });

  it('has the digest and the license of each package of the lock file, from npm', () => {
    const locked = lockedSbom().components as (Sbom['components'][number] & { hashes?: unknown; licenses?: unknown })[];
    for (const path of ['node_modules/express', 'node_modules/ink']) {
      const ref = `${nameAt(path)}@${lockFile().packages[path]?.version}`;
      const found = locked.find((component) => component['bom-ref'] === ref);
      expect(found, ref).to.include.keys('hashes', 'licenses', 'purl');
    }
  }).timeout(60_000);

  it('is refused if a bundled package is not in the lock file', () => {
    const { folder, lock, npm } = staged();
    delete lock.packages['node_modules/three'];
    expect(() => sbom(folder, lock, TIME, npm)).to.throw('bundled, but not in package-lock.json: three@3.0.0');
  });
});
