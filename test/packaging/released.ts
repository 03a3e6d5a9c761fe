/** The files of a release, for the tests that install them. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../config/package-root.js';
import { isThisMachine, type Target } from '../../packaging/targets.js';

const FOLDER = join(packageRoot(), 'release');

/** @param ending of the name. @returns the path of a file in release/, which `npm run release` has made. */
export function released(ending: string): string {
  const names = existsSync(FOLDER) ? readdirSync(FOLDER) : [];
  const name = names.find((each) => each.endsWith(ending));
  if (name === undefined) throw new Error(`there is no ${ending} in ${FOLDER}: run npm run release first`);
  return join(FOLDER, name);
}

/** @param architecture as Debian names it. */
export const debianPackage = (architecture = 'amd64') => released(`_${architecture}.deb`);

/** Whether this process may make roots and change to them, and has what makes them. */
export const WITHOUT_ROOTS =
  process.getuid?.() === 0 && ['mmdebstrap', 'unshare', 'chroot'].every((tool) => isInstalled(tool))
    ? ''
    : ' (skipped: needs root and mmdebstrap)';

function isInstalled(tool: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${tool}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** The path of the program that runs programs of another machine, if it is needed. */
export function emulatorFor(target: Target): string | null {
  return isThisMachine(target)
    ? null
    : execFileSync('sh', ['-c', `command -v ${target.emulator}`])
        .toString()
        .trim();
}

/** Whether something is missing for `emulatorFor`. */
export const withoutEmulator = (target: Target) =>
  isThisMachine(target) || isInstalled(target.emulator) || process.env.CI === 'true'
    ? ''
    : ` (skipped: ${target.emulator} is not installed)`;
