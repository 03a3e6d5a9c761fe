/**
 * Runs after each build. Makes the program executable, bundles the command line, writes the description of the management API, and removes files from dist/ whose source no longer exists: the compiler leaves
 * them, and test files among them would still run.
 */
import { chmodSync, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { readVersion } from '../../config/version.js';
import { DESCRIPTION_FILE } from '../../daemon/http/manage/description.js';
import { openApi } from '../../daemon/http/manage/openapi.js';
import { bundle } from './bundle.js';

const ROOT = resolve(import.meta.dirname, '../../..');
const DIST = join(ROOT, 'dist');

chmodSync(join(DIST, 'cli/main.js'), 0o755);
await bundle(DIST);
writeFileSync(DESCRIPTION_FILE, JSON.stringify(openApi(readVersion())));

for (const entry of readdirSync(DIST, { recursive: true, withFileTypes: true })) {
  const compiled = join(entry.parentPath, entry.name);
  const name = /^(.+)\.js(?:\.map)?$/.exec(relative(DIST, compiled))?.[1];
  if (name === undefined || !entry.isFile()) continue;
  const sources = [`${name}.ts`, `${name}.tsx`];
  if (!sources.some((source) => existsSync(join(ROOT, source)))) rmSync(compiled);
}
