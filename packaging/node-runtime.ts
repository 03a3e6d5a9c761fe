/**
 * The Node.js that a release contains, for each target. packaging/runtime pins its version, and the checksum of each package; npm
 * downloads them and refuses others. It is not the Node.js that makes the release.
 */
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../config/package-root.js';
import { run, textIn } from './files.js';
import type { Target } from './targets.js';

const SOURCES = join(packageRoot(), 'packaging/runtime');

export interface NodeRuntime {
  version: string;
  /** The checksum of its package, as npm writes it: `sha512-` and base64. */
  integrity: string;
  /** Where `installNodeRuntimes` puts it below its folder. */
  path: string;
}

interface RuntimeLock {
  packages: Record<string, { version: string; integrity: string } | undefined>;
}

/** What packaging/runtime/package-lock.json says. */
export function nodeRuntime({ arch }: Target, sources = SOURCES): NodeRuntime {
  const lock = JSON.parse(textIn(sources, 'package-lock.json')) as RuntimeLock;
  const path = `node_modules/node-linux-${arch}`;
  const locked = lock.packages[path];
  if (locked === undefined) throw new Error(`packaging/runtime/package-lock.json has no ${path}`);
  return { version: locked.version, integrity: locked.integrity, path };
}

/**
 * Downloads the Node.js of every target.
 *
 * @param folder that does not exist. @throws if a package is not the one of the lock file.
 */
export function installNodeRuntimes(folder: string, sources = SOURCES): void {
  mkdirSync(folder);
  for (const name of ['package.json', 'package-lock.json']) copyFileSync(join(sources, name), join(folder, name));
  // With `--force` npm also installs what is for another architecture than its own.
  const options = ['--force', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  run('npm', ['ci', ...options], { cwd: folder });
}

/** @param folder of `installNodeRuntimes`. */
export const nodeIn = (folder: string, target: Target) =>
  readFileSync(join(folder, nodeRuntime(target).path, 'bin/node'));

/** The license of Node.js and of what it contains. */
export const nodeLicenseIn = (folder: string, target: Target) => textIn(folder, nodeRuntime(target).path, 'LICENSE');
