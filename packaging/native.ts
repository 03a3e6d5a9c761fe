/** The native module of sqlite3 in dist/native, with a folder for each platform. It uses Node-API: one file is for all releases of Node.js. */
import { copyFileSync, existsSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { loadNative, NATIVE_FILE, platformName } from '../daemon/store/sqlite-native.js';

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
