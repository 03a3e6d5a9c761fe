/**
 * Runs after each build. Makes the program executable, and removes from dist/ what was compiled from a source that is gone: the compiler
 * leaves it there, and the test files among it would go on being run.
 */
import { chmodSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../../..');
const DIST = join(ROOT, 'dist');

chmodSync(join(DIST, 'cli/main.js'), 0o755);

for (const entry of readdirSync(DIST, { recursive: true, withFileTypes: true })) {
  const compiled = join(entry.parentPath, entry.name);
  const name = /^(.+)\.js(?:\.map)?$/.exec(relative(DIST, compiled))?.[1];
  if (name === undefined || !entry.isFile()) continue;
  const sources = [`${name}.ts`, `${name}.tsx`];
  if (!sources.some((source) => existsSync(join(ROOT, source)))) rmSync(compiled);
}
