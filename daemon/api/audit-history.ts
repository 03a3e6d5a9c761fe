/**
 * What happened to a project or a token, from the audit log. Each kind of record is requested separately: with the hourly records of use,
 * changes would be many pages apart.
 */
import type { ManagementClient } from './client.js';
import type { WireAuditRecord } from './contract.js';

/** Every action on a project or its tokens, except the hourly records of use. */
const ACTIONS = [
  'project.create',
  'project.update',
  'token.create',
  'token.exchange',
  'token.update',
  'token.revoke',
  'token.revoke_all',
  'token.reactivate',
] as const satisfies readonly WireAuditRecord['action'][];

/**
 * Loads the changes of a project and its tokens.
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

export interface TokenHistory {
  /** Newest first, down to the creation of the token. */
  changes: readonly WireAuditRecord[];
  /** Whether changes between the last two are left out because of the limit. */
  isTruncated: boolean;
  /** The last hourly record of its use; null if no use is recorded. */
  lastUse: WireAuditRecord | null;
}

/**
 * Loads the history of a token. Records older than the oldest record of a full page are left out, except for the creation of the token.
 *
 * @param maxRecords maximum number of records of each kind of change; a token has only one creation.
 * @param signal aborts the requests.
 */
export async function loadTokenHistory(
  client: ManagementClient,
  id: string,
  maxRecords: number,
  signal?: AbortSignal,
): Promise<TokenHistory> {
  const of = (action: string, limit: number) =>
    client.auditRecords({ token_id: id, action, limit: String(limit) }, signal);
  const [uses, made, exchanged, ...others] = await Promise.all([
    of('token.use', 1),
    of('token.create', 1),
    of('token.exchange', 1),
    of('token.update', maxRecords),
    of('token.revoke', maxRecords),
    of('token.reactivate', maxRecords),
  ]);
  const from = others.flatMap(({ next, items }) => (next === null ? [] : [items.at(-1)?.time ?? '']));
  const isShown = ({ time }: WireAuditRecord) => from.every((oldest) => time >= oldest);
  const changes = others.flatMap(({ items }) => items).filter(isShown);
  changes.sort((one, other) => other.time.localeCompare(one.time));
  return {
    changes: [...changes, ...made.items, ...exchanged.items],
    isTruncated: from.length > 0,
    lastUse: uses.items[0] ?? null,
  };
}
