/**
 * Stages a production tree in a folder: the files of the npm package, and the packages that npm would install with it, without what no
 * program reads. The tree needs only Node.js; its program is dist/cli/llmp.cjs. Run it after a build:
 *
 *     node dist/packaging/stage.js FOLDER
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, extname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = resolve(import.meta.dirname, '../..');

/** A package that npm installs with llmp. */
export interface Dependency {
  /** Relative to the root, such as `node_modules/pg`. */
  path: string;
  name: string;
  version: string;
}

interface Locked {
  version?: string;
  dev?: boolean;
  devOptional?: boolean;
}

/** What npm installs with llmp, according to package-lock.json, with the dependencies of dependencies, in order of their paths. */
export function productionDependencies(root = ROOT): Dependency[] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>;
  };
  return Object.entries(lock.packages)
    .filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional)
    .map(([path, { version = '' }]) => ({ path, name: path.slice(path.lastIndexOf('node_modules/') + 13), version }))
    .sort((one, other) => (one.path < other.path ? -1 : 1));
}

/** The paths of the files in the npm package, relative to the root, in order. @throws if npm cannot list them. */
export function packageFiles(root = ROOT): string[] {
  const listing = ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=error'];
  const { status, stdout, stderr } = spawnSync('npm', listing, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 });
  if (status !== 0) throw new Error(`npm pack failed: ${stderr}`);
  // npm 12 prints an object with an entry for each package in place of an array.
  const [packed] = Object.values(JSON.parse(stdout) as Record<string, { files: { path: string }[] }>);
  return (packed?.files ?? []).map(({ path }) => path).sort();
}

/** Folders of packages with what is only for their developers. */
const FOR_DEVELOPERS = new Set([
  '.github',
  'benchmark',
  'benchmarks',
  'coverage',
  'docs',
  'example',
  'examples',
  'test',
  'tests',
]);

/** Packages with nothing but types. */
const ONLY_TYPES = /^(?:@types\/|undici-types$)/;

/** Whether a file or folder of a package is needed when it runs. Licenses are. @param path relative to the package. */
export function isNeeded(path: string): boolean {
  const name = basename(path);
  if (/^(?:licen[cs]e|notice|copying)/i.test(name)) return true;
  if (FOR_DEVELOPERS.has(path) || name === 'node_modules') return false;
  return (
    !['.map', '.ts', '.mts', '.cts', '.flow', '.md', '.markdown'].includes(extname(name)) && !/^\.[a-z]/i.test(name)
  );
}

/**
 * @param target a folder that is empty, or does not exist. Modes are 755 for folders and programs and 644 for files. @throws if it is
 *   not empty, or a package is not installed.
 */
export function stage(target: string, root = ROOT): void {
  stagePackage(target, root);
  for (const { path, name } of productionDependencies(root)) {
    if (ONLY_TYPES.test(name)) continue;
    const source = join(root, path);
    copy(source, join(target, path), (file) => file === source || isNeeded(relative(source, file)));
  }
  setModes(target);
}

/** Only the files of the npm package, otherwise as `stage`. */
export function stagePackage(target: string, root = ROOT): void {
  mkdirSync(target, { recursive: true });
  if (readdirSync(target).length > 0) throw new Error(`${target} is not empty`);
  for (const file of packageFiles(root)) copy(join(root, file), join(target, file));
  setModes(target);
}

function copy(from: string, to: string, filter: (file: string) => boolean = () => true): void {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to, { recursive: true, dereference: true, filter });
}

function setModes(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) setModes(path);
    else chmodSync(path, isProgram(path) ? 0o755 : 0o644);
  }
}

const isProgram = (path: string) => statSync(path).size > 2 && readFileSync(path).subarray(0, 2).toString() === '#!';

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder] = process.argv.slice(2);
  if (folder === undefined) throw new Error('usage: node dist/packaging/stage.js FOLDER');
  stage(resolve(folder));
}
