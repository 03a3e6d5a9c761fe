/**
 * Runs after each build. Makes the program executable, bundles the command line, and removes files from dist/ whose source no longer exists: the compiler leaves
 * them, and test files among them would still run.
 */
import { chmodSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { bundle } from './bundle.js';

const ROOT = resolve(import.meta.dirname, '../../..');
const DIST = join(ROOT, 'dist');

chmodSync(join(DIST, 'cli/main.js'), 0o755);
await bundle(DIST);

for (const entry of readdirSync(DIST, { recursive: true, withFileTypes: true })) {
  const compiled = join(entry.parentPath, entry.name);
  const name = /^(.+)\.js(?:\.map)?$/.exec(relative(DIST, compiled))?.[1];
  if (name === undefined || !entry.isFile()) continue;
  const sources = [`${name}.ts`, `${name}.tsx`];
  if (!sources.some((source) => existsSync(join(ROOT, source)))) rmSync(compiled);
}
