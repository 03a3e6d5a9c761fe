/** Checks whether a folder is writable by this user, and has free space. */
import { access, constants, statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { failed, type Finding, ok, warning } from './doctor-finding.js';

const FAILED_BELOW_BYTES = 100_000_000;
const WARN_BELOW_BYTES = 1_000_000_000;

export const hasAccess = (path: string, mode: number) =>
  access(path, mode).then(
    () => true,
    () => false,
  );

/** The folder of a file, or its nearest ancestor that exists. */
export async function existingFolder(path: string): Promise<string> {
  let folder = dirname(resolve(path));
  while (folder !== dirname(folder) && !(await hasAccess(folder, constants.F_OK))) folder = dirname(folder);
  return folder;
}

export async function freeSpaceFinding(check: string, folder: string): Promise<Finding> {
  if (!(await hasAccess(folder, constants.W_OK | constants.X_OK))) {
    return failed(
      check,
      `${folder} cannot be written by this user`,
      `Grant write permission. Check with: ls -ld ${folder}`,
    );
  }
  const { bavail, bsize } = await statfs(folder);
  const bytes = bavail * bsize;
  const evidence = `${(bytes / 1e9).toFixed(1)} GB free in ${folder}`;
  const advice = `Free disk space. Check with: df -h ${folder}`;
  if (bytes < FAILED_BELOW_BYTES) return failed(check, evidence, advice);
  return bytes < WARN_BELOW_BYTES ? warning(check, evidence, advice) : ok(check, evidence);
}
