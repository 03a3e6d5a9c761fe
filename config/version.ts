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

/** Where a build comes from. The build writes it to dist/build.json, so that an installation needs no repository to know it. */
export interface BuildInfo {
  /** The full hash of the commit, with `-dirty` if files were changed; null if the sources were not in a repository. */
  commit: string | null;
  /** RFC 3339, in UTC: SOURCE_DATE_EPOCH, or the time of the commit, so that two builds of a commit are equal; null if neither is known. */
  builtAt: string | null;
  /** The version of SQLite in the native module; null if there was none for the platform of the build. */
  sqlite: string | null;
  /** The list of prices: the day on which its source was published, and the SHA-256 of config/prices.json. */
  prices: { date: string; sha256: string } | null;
}

/** The path of the file. */
export const buildInfoFile = () => join(packageRoot(), 'dist/build.json');

/** @returns nulls if the file cannot be read. */
export function readBuildInfo(): BuildInfo {
  try {
    return JSON.parse(readFileSync(buildInfoFile(), 'utf8')) as BuildInfo;
  } catch {
    return { commit: null, builtAt: null, sqlite: null, prices: null };
  }
}
