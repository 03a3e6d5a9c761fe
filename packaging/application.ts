/** The program with everything that it needs on a machine without Node.js. The packages for systems contain it. */
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { cacheCode } from './bundled-command-line.js';
import { entriesBelow, run, setModes, textIn, write } from './files.js';
import { unpackLibraries, writeLibraries } from './libraries.js';
import { nodeIn, nodeLicenseIn } from './node-runtime.js';
import { isThisMachine, type Target } from './targets.js';

/** Where the packages have the program, below the root of the system. */
export const APPLICATION = 'usr/lib/llmp';
/** Node.js in the package, below the folder of the program. */
export const NODE = 'bin/node';
/** The program, below the same folder. */
export const SCRIPT = 'dist/cli/llmp.cjs';

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

/** The program with the Node.js of a target. It runs only from `writeInstalled` or `writeRelocatable`. */
export interface Application {
  folder: string;
  target: Target;
  /** Debian's packages with the libraries that its binaries need: see `unpackLibraries`. */
  packages: string;
  /** These libraries, as the root of a system. */
  libraries: string;
}

/**
 * @param staged the folder of a package with its production dependencies, and with the native module of the target.
 * @param runtimes the folder of `installNodeRuntimes`. @param work a folder that does not exist.
 */
export function writeApplication(staged: string, target: Target, runtimes: string, work: string): Application {
  const [folder, packages, libraries] = ['program', 'packages', 'libraries'].map((name) => join(work, name)) as Paths;
  const platform = `linux-${target.arch}`;
  const isOfTarget = (path: string) => dirname(path) !== join(staged, 'dist/native') || basename(path) === platform;
  cpSync(staged, folder, { recursive: true, verbatimSymlinks: true, filter: isOfTarget });
  const node = join(folder, NODE);
  write(node, nodeIn(runtimes, target), 0o755);
  run(`${target.triplet}-strip`, ['--strip-unneeded', node]);
  write(join(folder, 'bin/LICENSE'), nodeLicenseIn(runtimes, target));
  unpackLibraries(target, packages);
  writeLibraries(binariesIn(folder), target, packages, libraries);
  cacheCommandLine(folder, isThisMachine(target) ? [node] : [target.emulator, '-L', libraries, node]);
  return { folder, target, packages, libraries };
}

type Paths = [folder: string, packages: string, libraries: string];

/** Node.js and the native modules in a folder that contains the program. */
export const binariesIn = (folder: string) =>
  entriesBelow(folder)
    .filter(({ entry, path }) => entry.isFile() && (path.endsWith('.node') || path.endsWith(`/${NODE}`)))
    .map(({ path }) => path);

/** npm's package has no code cache, which is for one release of Node.js; here it is known which one runs. */
function cacheCommandLine(folder: string, node: readonly [string, ...string[]]): void {
  const commandLine = join(folder, 'dist/cli');
  const program = readdirSync(commandLine).find((name) => /^llmp-.*\.cjs$/.test(name));
  if (program === undefined || !cacheCode(join(commandLine, program), node))
    throw new Error(`no code cache for the command line: is ${node[0]} there?`);
}

/** @param interpreter the path of Node.js on the machine where it is installed, for the first line of the program. */
function copyApplication({ folder }: Application, to: string, interpreter: string): void {
  cpSync(folder, to, { recursive: true, verbatimSymlinks: true });
  const script = join(to, SCRIPT);
  write(script, readFileSync(script, 'utf8').replace(/^#!.*/, `#!${interpreter} --`));
  setModes(to, [join(to, NODE), script]);
}

/**
 * The tree that the Debian package and the container image contain: the program in /usr/lib, its command in /usr/bin.
 *
 * @param root a folder, as the root of the system.
 */
export function writeInstalled(application: Application, root: string): void {
  copyApplication(application, join(root, APPLICATION), `/${APPLICATION}/${NODE}`);
  mkdirSync(join(root, 'usr/bin'));
  symlinkSync(`../lib/llmp/${SCRIPT}`, join(root, 'usr/bin', PROGRAM));
}

/**
 * The folder that a release file is unpacked to. It may be anywhere, so a shell script finds Node.js beside itself.
 *
 * @param to a folder that does not exist.
 */
export function writeRelocatable(application: Application, to: string): void {
  copyApplication(application, to, '/usr/bin/env -S node');
  // A program finds its own name in the path of its script.
  mkdirSync(join(to, 'libexec'));
  symlinkSync(`../${SCRIPT}`, join(to, 'libexec/llmp'));
  write(join(to, 'bin/llmp'), LAUNCHER, 0o755);
}

/** bin/llmp of that folder. */
export const LAUNCHER = `#!/bin/sh
# Starts llmp with the Node.js beside this script, also through a link to the script.
self=$0
while [ -L "$self" ]; do
  target=$(readlink "$self")
  case $target in /*) self=$target ;; *) self=$(dirname "$self")/$target ;; esac
done
bin=$(cd "$(dirname "$self")" && pwd -P)
exec "$bin/node" -- "$bin/../libexec/llmp" "$@"
`;
