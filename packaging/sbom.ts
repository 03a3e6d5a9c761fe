/** The list of components (SBOM) of a release, in the format CycloneDX 1.6, from the lock file. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../config/package-root.js';
import { manifestIn, type Manifest } from './application.js';
import { type Component as Bundled, COMPONENTS_FILE } from './bundled-packages.js';

/** What the lock file has about a package. */
export interface Locked {
  version: string;
  integrity?: string;
  license?: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

export interface LockFile {
  packages: Record<string, Locked>;
}

interface Component {
  type: 'application' | 'library' | 'platform';
  'bom-ref': string;
  name: string;
  version: string;
  purl?: string;
  hashes?: { alg: string; content: string }[];
  licenses?: Licenses;
}

type Licenses = ({ license: { id: string } } | { expression: string })[];

/** The name of the package at a path of the lock file: `@scope/name` for `node_modules/other/node_modules/@scope/name`. */
export const nameAt = (path: string) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);

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
  const bundled = new Set((JSON.parse(list) as Bundled[]).map(({ name, version }) => purl(name, version)));
  const found = new Set<string>();
  const shipped = Object.entries(lock.packages).flatMap(([path, locked]): Shipped[] => {
    if (path === '') return [];
    if (existsSync(join(staged, path, 'package.json'))) return [{ path, locked, isBundled: false }];
    const ref = purl(nameAt(path), locked.version);
    if (!bundled.has(ref) || found.has(ref)) return [];
    found.add(ref);
    return [{ path, locked, isBundled: true }];
  });
  const missing = [...bundled].filter((ref) => !shipped.some((it) => purl(nameAt(it.path), it.locked.version) === ref));
  if (missing.length > 0) throw new Error(`bundled, but not in package-lock.json: ${missing.join(', ')}`);
  return shipped;
}

/**
 * @param staged the folder of the package with its production dependencies. @param time of the release, in seconds since 1970.
 * @returns the document as JSON. The same release always has the same text.
 */
export function sbom(staged: string, lock: LockFile, time: number): string {
  const manifest = manifestIn(staged);
  const shipped = shippedPackages(staged, lock);
  const components = [...shipped.map(packageComponent), nodeComponent()];
  const own = ownComponent(manifest);
  const document = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify([own, components]))}`,
    version: 1,
    metadata: { timestamp: new Date(time * 1000).toISOString(), component: own },
    components: unique(components),
    dependencies: dependenciesOf(own['bom-ref'], lock, shipped),
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function ownComponent({ name, version, license }: Manifest): Component {
  const ref = purl(name, version);
  return { type: 'application', 'bom-ref': ref, name, version, purl: ref, licenses: licensesOf(license) };
}

function packageComponent({ path, locked: { version, integrity, license } }: Shipped): Component {
  const name = nameAt(path);
  const ref = purl(name, version);
  const hashes = (integrity ?? '').split(' ').flatMap((each) => {
    const [algorithm = '', digest] = each.split('-');
    if (digest === undefined) return [];
    return { alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(digest, 'base64').toString('hex') };
  });
  return {
    type: 'library',
    'bom-ref': ref,
    name,
    version,
    purl: ref,
    ...(hashes.length > 0 && { hashes }),
    ...(license !== undefined && { licenses: licensesOf(license) }),
  };
}

/** Files with Node.js contain it; npm's package does not. */
function nodeComponent(): Component {
  const version = process.versions.node;
  return { type: 'platform', 'bom-ref': `node@${version}`, name: 'node', version, licenses: licensesOf('MIT') };
}

const licensesOf = (license: string): Licenses => [
  / (?:OR|AND) /.test(license) ? { expression: license } : { license: { id: license } },
];

const purl = (name: string, version: string) => `pkg:npm/${name.replace('@', '%40')}@${version}`;

const unique = (components: readonly Component[]) => [...new Map(components.map((it) => [it['bom-ref'], it])).values()];

function dependenciesOf(own: string, lock: LockFile, shipped: readonly Shipped[]) {
  const paths = new Map(shipped.map(({ path, locked }) => [path, locked]));
  const edges = new Map<string, Set<string>>();
  const root = lock.packages[''];
  for (const { path, locked } of [...(root ? [{ path: '', locked: root }] : []), ...shipped]) {
    const ref = path === '' ? own : purl(nameAt(path), locked.version);
    // What the build bundles is a dependency for development.
    const ofBuild = path === '' ? locked.devDependencies : {};
    const names = Object.keys({ ...locked.dependencies, ...locked.optionalDependencies, ...ofBuild });
    const targets = names.flatMap((name) => {
      const found = resolvedPath(path, name, paths);
      return found === undefined ? [] : purl(name, paths.get(found)?.version ?? '');
    });
    edges.set(ref, new Set([...(edges.get(ref) ?? []), ...targets]));
  }
  return [...edges].map(([ref, targets]) => ({ ref, dependsOn: [...targets].sort() }));
}

/** Where Node.js finds a package from a package: in its own folder, or in one above. */
function resolvedPath(from: string, name: string, paths: ReadonlyMap<string, Locked>): string | undefined {
  const path = from === '' ? `node_modules/${name}` : `${from}/node_modules/${name}`;
  if (paths.has(path)) return path;
  if (from === '') return undefined;
  const parent = from.slice(0, from.lastIndexOf('node_modules/')).replace(/\/$/, '');
  return resolvedPath(parent, name, paths);
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
