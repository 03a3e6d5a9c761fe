/** Loads the native module of sqlite3 for this platform. The build puts this file into the bundle of sqlite3, in place of `bindings`. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The folder with a folder for each platform: dist/native, from dist/daemon/store as well as from dist/node_modules/sqlite3. */
const NATIVE = join(import.meta.dirname, '../../native');

/** The name of the native module in the folder of its platform. */
export const NATIVE_FILE = 'node_sqlite3.node';

/** For example `linux-x64`: with glibc, where it matters. */
export const platformName = () => `${process.platform}-${process.arch}`;

/**
 * @param folder default: dist/native.
 * @returns the exports of the native module. If it is missing or cannot be loaded, `unavailable` says why and what to do, and
 *   the classes throw it, so that what needs no SQLite works.
 */
export function loadNative(folder = NATIVE, platform = platformName()): object {
  let reason = '';
  // A system with another C library rejects the first, and loads the second.
  for (const name of [platform, `${platform}-musl`]) {
    const path = join(folder, name, NATIVE_FILE);
    if (!existsSync(path)) continue;
    const module = { exports: {} };
    try {
      process.dlopen(module, path);
      return module.exports;
    } catch (error) {
      reason ||= `${path} cannot be loaded: ${(error as Error).message.split('\n', 1)[0] ?? ''}`;
    }
  }
  const shipped = existsSync(folder) ? readdirSync(folder).sort().join(', ') : '';
  reason ||= `this installation has no native module for ${platform}${shipped && `, only for ${shipped}`}`;
  return without(
    `SQLite cannot be used: ${reason}. Use PostgreSQL or MySQL (DATABASE_URL), or build llmp on this machine`,
  );
}

/** What sqlite3 needs of its native module while it is loaded: classes, to whose prototypes it adds methods. */
function without(unavailable: string): object {
  const part = () =>
    function () {
      throw new Error(unavailable);
    };
  return { Database: part(), Statement: part(), Backup: part(), unavailable };
}
