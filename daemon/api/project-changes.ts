/** Changes of one project and its tokens, from the audit log. */
import type { ManagementClient } from './client.js';
import type { WireAuditRecord } from './contract.js';

/** Every action on a project or token, except the hourly records of use, between which changes would be many pages apart. */
const ACTIONS = [
  'project.create',
  'project.update',
  'token.create',
  'token.revoke',
  'token.revoke_all',
  'token.reactivate',
] as const satisfies readonly WireAuditRecord['action'][];

/**
 * Requests each kind of record separately.
 *
 * @param most maximum number of records.
 * @param signal aborts the requests.
 * @returns the latest records, newest first.
 */
export async function loadProjectChanges(
  client: ManagementClient,
  projectId: string,
  most: number,
  signal?: AbortSignal,
): Promise<WireAuditRecord[]> {
  const pages = await Promise.all(
    ACTIONS.map((action) => client.auditRecords({ project_id: projectId, action, limit: String(most) }, signal)),
  );
  const all = pages.flatMap(({ items }) => items);
  return all.sort((one, other) => other.time.localeCompare(one.time)).slice(0, most);
}
