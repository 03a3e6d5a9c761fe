/** What `llmp version` and `llmp --version` say. */
import { readBuildInfo } from '../../config/build-info.js';
import { readVersion } from '../../config/version.js';

/** The parts of an installation that a report of a problem must name. Null if the build could not find it out. */
export interface VersionInfo {
  version: string;
  built_at: string | null;
  commit: string | null;
  node: string;
  /** Of the native module in this installation. */
  sqlite: string | null;
}

export function versionInfo(): VersionInfo {
  const { builtAt, commit, sqlite } = readBuildInfo();
  return { version: readVersion(), built_at: builtAt, commit, node: process.version, sqlite };
}

/** For `-v`: the version, and a line for each other part. */
export function versionLines(): string {
  const { version, built_at: builtAt, commit, node, sqlite } = versionInfo();
  const parts = { build: builtAt, commit, 'Node.js': node.replace(/^v/, ''), SQLite: sqlite };
  const lines = Object.entries(parts).map(([name, part]) => `${name.padEnd(9)}${part ?? 'unknown'}`);
  return [`llmp ${version}`, ...lines].join('\n');
}
