/** The list of components (SBOM) of a release, in the format CycloneDX: what `npm sbom` knows about the packages that are shipped. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../config/package-root.js';
import { manifestIn } from './application.js';
import { type Component as Bundled, COMPONENTS_FILE } from './bundled-packages.js';
import { run } from './files.js';
import { nodeRuntime } from './node-runtime.js';
import { type Target, TARGETS } from './targets.js';

/** What the lock file has about a package. */
export interface Locked {
  version: string;
  license?: string;
}

export interface LockFile {
  packages: Record<string, Locked>;
}

/** The name of the package at a path of the lock file: `@scope/name` for `node_modules/other/node_modules/@scope/name`. */
export const nameAt = (path: string) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);

/** As `npm sbom` refers to a package. */
const refOf = ({ path, locked }: Pick<Shipped, 'path' | 'locked'>) => `${nameAt(path)}@${locked.version}`;

export interface Shipped {
  /** In the lock file. */
  path: string;
  locked: Locked;
  /** Whether its code is in a bundle, and not in a folder of its own. */
  isBundled: boolean;
}

export const lockFile = () => JSON.parse(readFileSync(join(packageRoot(), 'package-lock.json'), 'utf8')) as LockFile;

/** The packages of the lock file that the staged package contains, in folders of their own or bundled. */
export function shippedPackages(staged: string, lock: LockFile): Shipped[] {
  const list = readFileSync(join(staged, 'dist/node_modules', COMPONENTS_FILE), 'utf8');
  const bundled = new Set((JSON.parse(list) as Bundled[]).map(({ name, version }) => `${name}@${version}`));
  const found = new Set<string>();
  const shipped = Object.entries(lock.packages).flatMap(([path, locked]): Shipped[] => {
    if (path === '') return [];
    if (existsSync(join(staged, path, 'package.json'))) return [{ path, locked, isBundled: false }];
    const ref = refOf({ path, locked });
    if (!bundled.has(ref) || found.has(ref)) return [];
    found.add(ref);
    return [{ path, locked, isBundled: true }];
  });
  const missing = [...bundled].filter((ref) => !shipped.some((it) => refOf(it) === ref));
  if (missing.length > 0) throw new Error(`bundled, but not in package-lock.json: ${missing.join(', ')}`);
  return shipped;
}

/** The parts of a CycloneDX document that are changed. */
export interface Sbom {
  serialNumber: string;
  metadata: { timestamp: string; component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

interface Component {
  'bom-ref': string;
  type: string;
  name: string;
  version: string;
  scope?: string;
  properties?: unknown[];
}

/** All packages of the lock file, also those that are only for development. */
export function lockedSbom(): Sbom {
  // What the build bundles is for development, and npm leaves that out if NODE_ENV is `production`.
  const options = ['--sbom-format=cyclonedx', '--package-lock-only', '--include=dev', '--offline'];
  return JSON.parse(run('npm', ['sbom', ...options], { cwd: packageRoot() }).toString()) as Sbom;
}

/**
 * @param staged the folder of the package with its production dependencies.
 * @param time of the release, in seconds since 1970.
 * @returns the document as JSON. The same release always has the same text, if it is made with the same npm.
 */
export function sbom(staged: string, lock: LockFile, time: number, locked = lockedSbom()): string {
  const own = { ...locked.metadata.component, type: 'application', name: manifestIn(staged).name };
  const refs = new Set(shippedPackages(staged, lock).map(refOf));
  const components = [
    ...locked.components
      .filter((component) => refs.has(component['bom-ref']))
      // What the build bundles is for development, as far as npm knows.
      .map((component) => ({ ...component, scope: 'required', properties: [] })),
    ...TARGETS.map(nodeComponent),
  ];
  const document = {
    ...locked,
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify([own, components]))}`,
    metadata: { ...locked.metadata, timestamp: new Date(time * 1000).toISOString(), component: own },
    components,
    dependencies: locked.dependencies
      .filter(({ ref }) => ref === own['bom-ref'] || refs.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => refs.has(each)) })),
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** The Node.js of a target, with the checksum of its package: files with Node.js contain it; npm's package does not. */
function nodeComponent(target: Target): Component & Record<'cpe' | 'purl' | 'hashes' | 'licenses', unknown> {
  const { version, integrity, path } = nodeRuntime(target);
  const ref = `${nameAt(path)}@${version}`;
  const digest = integrity.replace(/^sha512-/, '');
  return {
    'bom-ref': ref,
    type: 'platform',
    name: 'node',
    version,
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    purl: `pkg:npm/${ref}`,
    hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }],
    licenses: [{ license: { id: 'MIT' } }],
  };
}

/** A UUID of version 8 (RFC 9562): its bits are those of a digest. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}
