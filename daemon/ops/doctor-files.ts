/** Doctor checks of folders, and of the audit files in them. */
import { access, constants, statfs } from 'node:fs/promises';
import type { AllSettings } from '../../config/settings.js';
import {
  type CheckGroup,
  checksWith,
  type DoctorContext,
  failed,
  type Finding,
  ok,
  skipped,
  warning,
} from './doctor-finding.js';
import { dirname, resolve } from 'node:path';

type AuditSettings = Pick<AllSettings, 'auditLogFile' | 'auditUseLogFile'>;

/** While the audit file of changes cannot be written, the daemon refuses changes. */
export const auditChecks = (context: DoctorContext): CheckGroup =>
  checksWith('audit', context, ['auditLogFile', 'auditUseLogFile'], audit);

async function* audit({ auditLogFile, auditUseLogFile }: AuditSettings): AsyncGenerator<Finding> {
  const paths = [auditLogFile, auditUseLogFile].filter((path) => path !== null);
  const folders = new Set<string>();
  for (const path of paths) {
    if ((await hasAccess(path, constants.F_OK)) && !(await hasAccess(path, constants.W_OK))) {
      yield failed(
        'audit',
        `${path} cannot be written by this user`,
        `Grant write permission. Check with: ls -l ${path}`,
      );
    }
    folders.add(await existingFolder(path));
  }
  for (const folder of folders) yield await freeSpaceFinding('audit', folder);
  if (folders.size === 0)
    yield skipped('audit', 'no audit files are configured (AUDIT_LOG_FILE and AUDIT_USE_LOG_FILE are empty)');
}

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

/** Whether a folder is writable by this user, and has free space. */
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
