/** The program with everything that it needs on a machine without Node.js. The packages for systems contain it. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { packageRoot } from '../config/package-root.js';
import { entriesBelow, run, setModes, textIn, write } from './files.js';

/** Where the packages have the program, below the root of the system. */
export const APPLICATION = 'usr/lib/llmp';
/** Node.js in the package, below the folder of the program. */
export const NODE = 'bin/node';
const SCRIPT = 'dist/cli/llmp.cjs';

/** The name of the program, and of everything that is not npm's package. */
export const PROGRAM = 'llmp';

export interface Manifest {
  /** The name on npm. */
  name: string;
  version: string;
  description: string;
  license: string;
  man: readonly string[];
}

export const manifestIn = (folder: string) => JSON.parse(textIn(folder, 'package.json')) as Manifest;

/**
 * Copies a staged package, with its production dependencies, and adds Node.js.
 *
 * @param staged its folder. @param to a folder that does not exist.
 * @param interpreter the path of Node.js on the machine where it is installed, for the first line of the program.
 */
export function writeApplication(staged: string, to: string, interpreter: string): void {
  cpSync(staged, to, { recursive: true, verbatimSymlinks: true });
  copyCodeCache(to);
  const node = join(to, NODE);
  write(node, readFileSync(process.execPath));
  const nativeModules = entriesBelow(join(to, 'dist/native')).filter(({ entry }) => entry.isFile());
  run('strip', ['--strip-unneeded', node, ...nativeModules.map(({ path }) => path)]);
  write(join(to, 'bin/LICENSE'), nodeLicense());
  const script = join(to, SCRIPT);
  write(script, readFileSync(script, 'utf8').replace(/^#!.*/, `#!${interpreter} --`));
  setModes(to, [node, script]);
}

/**
 * The tree that the Debian package and the container image contain: the program in /usr/lib, its command in /usr/bin.
 *
 * @param root a folder, as the root of the system.
 */
export function writeInstalled(staged: string, root: string): void {
  writeApplication(staged, join(root, APPLICATION), `/${APPLICATION}/${NODE}`);
  mkdirSync(join(root, 'usr/bin'));
  symlinkSync(`../lib/llmp/${SCRIPT}`, join(root, 'usr/bin', PROGRAM));
}

/**
 * The folder that a release file is unpacked to. It may be anywhere, so a shell script finds Node.js beside itself.
 *
 * @param to a folder that does not exist.
 */
export function writeRelocatable(staged: string, to: string): void {
  writeApplication(staged, to, '/usr/bin/env -S node');
  // A program finds its own name in the path of its script.
  mkdirSync(join(to, 'libexec'));
  symlinkSync(`../${SCRIPT}`, join(to, 'libexec/llmp'));
  write(join(to, 'bin/llmp'), LAUNCHER, 0o755);
}

const LAUNCHER = `#!/bin/sh
# Starts llmp with the Node.js beside this script, also through a link to the script.
self=$0
while [ -L "$self" ]; do
  target=$(readlink "$self")
  case $target in /*) self=$target ;; *) self=$(dirname "$self")/$target ;; esac
done
bin=$(cd "$(dirname "$self")" && pwd -P)
exec "$bin/node" -- "$bin/../libexec/llmp" "$@"
`;

/** The code cache of the command line is for one release of Node.js: npm's package has none, but here it is known which one runs. */
function copyCodeCache(to: string): void {
  const folder = join(packageRoot(), 'dist/cli');
  for (const name of readdirSync(folder).filter(
    (each) => each.includes(`-${process.versions.v8}-`) && each.endsWith('.cache'),
  ))
    cpSync(join(folder, name), join(to, 'dist/cli', name));
}

/** The license of Node.js and of what it contains. */
function nodeLicense(): string {
  const prefix = resolve(dirname(process.execPath), '..');
  const path = ['LICENSE', 'share/doc/nodejs/LICENSE'].map((name) => join(prefix, name)).find(existsSync);
  if (path === undefined) throw new Error(`the license of Node.js is not below ${prefix}: install Node.js with it`);
  return readFileSync(path, 'utf8');
}
