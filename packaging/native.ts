/** The native module of sqlite3 in dist/native, with a folder for each platform. It uses Node-API: one file is for all releases of Node.js. */
import { copyFileSync, cpSync, existsSync, mkdirSync, realpathSync, renameSync, statSync, symlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { loadNative, NATIVE_FILE, platformName } from '../daemon/store/sqlite-native.js';
import { run } from './files.js';
import type { Target } from './targets.js';

/**
 * Copies what npm compiled or downloaded for this platform. Files of other platforms in dist/native stay there. @param root the folder
 * of the repository. @returns whether there is a native module for this platform.
 */
export function copyNative(root: string): boolean {
  const compiled = join(root, 'node_modules/sqlite3/build/Release', NATIVE_FILE);
  const folder = join(root, 'dist/native', `${platformName()}${isMusl() ? '-musl' : ''}`);
  const target = join(folder, NATIVE_FILE);
  if (!existsSync(compiled)) return existsSync(target);
  if (existsSync(target) && statSync(target).mtimeMs >= statSync(compiled).mtimeMs) return true;
  mkdirSync(folder, { recursive: true });
  // Replaced, not overwritten: a running process may have mapped it.
  copyFileSync(compiled, `${target}.${process.pid}`);
  renameSync(`${target}.${process.pid}`, target);
  return true;
}

/** The version of Node-API for which the authors of sqlite3 compile it: every supported Node.js has it. */
const NODE_API = 6;

/**
 * Compiles sqlite3 for a release, which takes a minute or two. npm may have downloaded what others compiled, so that is in no release.
 *
 * @param headers the folder with include/node of the target's Node.js. @param work a folder that does not exist.
 * @returns the path of the native module.
 */
export function compileNative(root: string, { arch, triplet }: Target, headers: string, work: string): string {
  const source = join(root, 'node_modules/sqlite3');
  const copy = join(work, 'sqlite3');
  cpSync(source, copy, { recursive: true, filter: (path) => relative(source, path) !== 'build' });
  // What compiles it finds its packages here.
  symlinkSync(realpathSync(join(root, 'node_modules')), join(work, 'node_modules'));
  const compilers = { CC: `${triplet}-gcc`, CXX: `${triplet}-g++`, AR: `${triplet}-ar` };
  // Not an option: a setting of npm would override it.
  const env = { ...process.env, ...compilers, npm_config_nodedir: headers };
  const options = [`--arch=${arch}`, `--napi_build_version=${NODE_API}`, '--loglevel=error'];
  run('npm', ['run', '--silent', 'rebuild', '--', ...options], { cwd: copy, env });
  return join(copy, 'build/Release', NATIVE_FILE);
}

/** The path of a target's native module in a folder of the package. */
export const nativeIn = (folder: string, { arch }: Target) => join(folder, `dist/native/linux-${arch}`, NATIVE_FILE);

/** The version of SQLite in dist/native; null if there is no native module for this platform. */
export function sqliteVersion(root: string): string | null {
  const { VERSION = null } = loadNative(join(root, 'dist/native')) as { VERSION?: string };
  return VERSION;
}

/** Whether Node.js runs with musl, as on Alpine, in place of glibc. */
function isMusl(): boolean {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return process.platform === 'linux' && header.glibcVersionRuntime === undefined;
}
