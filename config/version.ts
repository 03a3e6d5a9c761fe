import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from './package-root.js';

/** The version of this build, from package.json. */
export function readVersion(): string {
  return manifest().version;
}

/** The name of the package on the npm registry. The command is `llmp`. */
export function readPackageName(): string {
  return manifest().name;
}

/** The supported versions of Node.js, for example `>=20.19`. */
export function readNodeRange(): string {
  return manifest().engines.node;
}

function manifest(): { name: string; version: string; engines: { node: string } } {
  const text = readFileSync(join(packageRoot(), 'package.json'), 'utf8');
  return JSON.parse(text) as ReturnType<typeof manifest>;
}
