/**
 * Runs after each build. Makes the program executable, bundles packages and the command line, copies the native module of SQLite, writes the description of the
 * management API and where the build comes from, and removes files from dist/ whose source no longer exists: the compiler leaves
 * them, and test files among them would still run.
 */
import { chmodSync, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { buildInfoFile } from '../config/version.js';
import { readVersion } from '../config/version.js';
import { DESCRIPTION_FILE } from '../daemon/http/manage/description.js';
import { readShippedList } from '../daemon/process/price-lists.js';
import { openApi } from '../daemon/http/manage/openapi.js';
import { sourceOf } from './build-info.js';
import { bundle } from './bundled-command-line.js';
import { bundlePackages } from './bundled-packages.js';
import { copyNative, sqliteVersion } from './native.js';

const ROOT = resolve(import.meta.dirname, '../..');
const DIST = join(ROOT, 'dist');

chmodSync(join(DIST, 'cli/main.js'), 0o755);
await bundlePackages(ROOT);
if (!copyNative(ROOT))
  console.error('warning: sqlite3 has no native module: allow its install script, and run npm rebuild sqlite3');
await bundle(DIST);
const { date, sha256 } = readShippedList();
const info = {
  ...sourceOf(ROOT, process.env.SOURCE_DATE_EPOCH),
  sqlite: sqliteVersion(ROOT),
  prices: { date, sha256 },
};
writeFileSync(buildInfoFile(), `${JSON.stringify(info)}\n`);
writeFileSync(DESCRIPTION_FILE, JSON.stringify(openApi(readVersion())));

for (const entry of readdirSync(DIST, { recursive: true, withFileTypes: true })) {
  const compiled = join(entry.parentPath, entry.name);
  const name = /^(.+)\.js(?:\.map)?$/.exec(relative(DIST, compiled))?.[1];
  if (name === undefined || !entry.isFile() || name.startsWith('node_modules/')) continue;
  const sources = [`${name}.ts`, `${name}.tsx`];
  if (!sources.some((source) => existsSync(join(ROOT, source)))) rmSync(compiled);
}
