import { readFileSync } from 'node:fs';

/** The version of this build, from package.json two folders above the compiled file. */
export function readVersion(): string {
  return manifest().version;
}

/** The supported versions of Node.js, for example `>=20.19`. */
export function readNodeRange(): string {
  return manifest().engines.node;
}

function manifest(): { version: string; engines: { node: string } } {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return JSON.parse(text) as ReturnType<typeof manifest>;
}
