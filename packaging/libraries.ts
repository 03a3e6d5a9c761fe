/**
 * The libraries that the binaries of a release need. They come from Debian's packages for the target, whatever system makes the release.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { entriesBelow, run, write } from './files.js';
import type { Target } from './targets.js';

/** The release of Debian whose libraries the container image contains. */
const SUITE = 'trixie';

/** With what it depends on: libc6 and libgcc-s1. */
const PACKAGE = 'libstdc++6';

/**
 * Downloads Debian's packages with the libraries, which apt verifies, and unpacks them.
 *
 * @param folder that does not exist. Each package is in debian/NAME, with its control files in debian/NAME/DEBIAN, where dpkg-shlibdeps
 *   looks for them.
 */
export function unpackLibraries({ debianArch }: Target, folder: string): void {
  const system = join(folder, 'system');
  mkdirSync(join(folder, 'debian'), { recursive: true });
  const options = ['--variant=extract', '--skip=cleanup/apt', `--architectures=${debianArch}`, `--include=${PACKAGE}`];
  run('mmdebstrap', ['--quiet', ...options, SUITE, system]);
  const archives = join(system, 'var/cache/apt/archives');
  for (const name of readdirSync(archives).filter((each) => each.endsWith('.deb'))) {
    const unpacked = join(folder, 'debian', name.slice(0, name.indexOf('_')));
    run('dpkg-deb', ['--raw-extract', join(archives, name), unpacked]);
  }
  write(join(folder, 'debian/control'), 'Source: llmp\n\nPackage: llmp\nArchitecture: any\n');
}

/**
 * What a Debian package with these binaries depends on, with the oldest version of each library that has what they use.
 *
 * @param folder of `unpackLibraries`.
 */
export function dependenciesOf(binaries: readonly string[], { debianArch }: Target, folder: string): string[] {
  const env = { ...process.env, DEB_HOST_ARCH: debianArch };
  const found = run('dpkg-shlibdeps', ['-O', ...binaries.map((path) => `-e${path}`)], { cwd: folder, env }).toString();
  const depends = /^shlibs:Depends=(.+)$/m.exec(found)?.[1];
  if (depends === undefined) throw new Error(`dpkg-shlibdeps found no libraries: ${found}`);
  return depends.split(', ');
}

/**
 * Writes the libraries that binaries need to a folder, as the root of a system, with their licenses.
 *
 * @param folder of `unpackLibraries`. @param root a folder that does not exist.
 */
export function writeLibraries(binaries: readonly string[], target: Target, folder: string, root: string): void {
  // As in Debian, /lib and /lib64 are links.
  for (const name of ['lib', 'lib64']) {
    mkdirSync(join(root, 'usr', name), { recursive: true });
    symlinkSync(`usr/${name}`, join(root, name));
  }
  const packages = readdirSync(join(folder, 'debian'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const unpacked = packages.map(({ name }) => join(folder, 'debian', name));
  const pathOf = (library: string) =>
    unpacked.map((each) => join(each, 'usr/lib', target.triplet, library)).find(existsSync);
  const names = new Set(binaries.flatMap(neededBy));
  for (const name of names) {
    const path = pathOf(name);
    if (path === undefined) throw new Error(`${PACKAGE} and its dependencies do not contain ${name}`);
    const content = readFileSync(path);
    write(join(root, 'usr/lib', target.triplet, name), content, 0o755);
    if (target.loader.endsWith(`/${name}`)) write(join(root, 'usr', target.loader), content, 0o755);
    // The loop goes on with what is added.
    for (const needed of neededBy(realpathSync(path))) names.add(needed);
  }
  for (const { entry, path } of unpacked.flatMap(entriesBelow)) {
    const [, owner] = /\/usr\/share\/doc\/([^/]+)\/copyright$/.exec(path) ?? [];
    if (owner && entry.isFile()) write(join(root, 'usr/share/doc', owner, 'copyright'), readFileSync(path));
  }
}

/** The names of the libraries that a binary loads itself. */
function neededBy(binary: string): string[] {
  const dynamic = run('readelf', ['--dynamic', '--wide', binary]).toString();
  return [...dynamic.matchAll(/\(NEEDED\).*\[(.+)\]/g)].map(([, name = '']) => name);
}
