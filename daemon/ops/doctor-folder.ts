/** Whether there is room where something is written, and whether this user may write there. */
import { access, constants, statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { failed, type Finding, ok, warning } from './doctor-finding.js';

const FEW_BYTES = 100_000_000;
const SOME_BYTES = 1_000_000_000;

export const may = (path: string, mode: number) =>
  access(path, mode).then(
    () => true,
    () => false,
  );

/** The folder of a file, or the nearest one above it that is made already. */
export async function existingFolder(path: string): Promise<string> {
  let folder = dirname(resolve(path));
  while (folder !== dirname(folder) && !(await may(folder, constants.F_OK))) folder = dirname(folder);
  return folder;
}

export async function roomIn(check: string, folder: string): Promise<Finding> {
  if (!(await may(folder, constants.W_OK | constants.X_OK))) {
    return failed(check, `${folder} cannot be written by this user`, `ls -ld ${folder}`);
  }
  const { bavail, bsize } = await statfs(folder);
  const bytes = bavail * bsize;
  const room = `${(bytes / 1e9).toFixed(1)} GB free in ${folder}`;
  if (bytes < FEW_BYTES) return failed(check, room, `df -h ${folder}`);
  return bytes < SOME_BYTES ? warning(check, room, `df -h ${folder}`) : ok(check, room);
}
