/** Whether the audit files can be written: while that of changes cannot, no change is made. */
import { constants } from 'node:fs/promises';
import { type Around, failed, type Family, type Finding, partOf, skipped, WRONG_SETTINGS } from './doctor-finding.js';
import { existingFolder, may, roomIn } from './doctor-folder.js';

export function auditFamily(around: Around): Family {
  return { check: 'audit', look: () => audit(around) };
}

async function* audit(around: Around): AsyncGenerator<Finding> {
  const settings = partOf(around, ['auditLogFile', 'auditUseLogFile']);
  if (!settings) {
    yield skipped('audit', WRONG_SETTINGS);
    return;
  }
  const paths = [settings.auditLogFile, settings.auditUseLogFile].filter((path) => path !== null);
  const folders = new Set<string>();
  for (const path of paths) {
    if ((await may(path, constants.F_OK)) && !(await may(path, constants.W_OK))) {
      yield failed('audit', `${path} cannot be written by this user`, `ls -l ${path}`);
    }
    folders.add(await existingFolder(path));
  }
  for (const folder of folders) yield await roomIn('audit', folder);
  if (folders.size === 0) yield skipped('audit', 'no file is kept (AUDIT_LOG_FILE and AUDIT_USE_LOG_FILE are empty)');
}
