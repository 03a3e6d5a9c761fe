/** Doctor check of the audit files. While the audit file of changes cannot be written, the daemon refuses changes. */
import { constants } from 'node:fs/promises';
import {
  type DoctorContext,
  failed,
  type CheckGroup,
  type Finding,
  validSettings,
  skipped,
  INVALID_SETTINGS,
} from './doctor-finding.js';
import { existingFolder, hasAccess, freeSpaceFinding } from './doctor-folder.js';

export function auditChecks(context: DoctorContext): CheckGroup {
  return { check: 'audit', run: () => audit(context) };
}

async function* audit(context: DoctorContext): AsyncGenerator<Finding> {
  const settings = validSettings(context, ['auditLogFile', 'auditUseLogFile']);
  if (!settings) {
    yield skipped('audit', INVALID_SETTINGS);
    return;
  }
  const paths = [settings.auditLogFile, settings.auditUseLogFile].filter((path) => path !== null);
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
