/** History of one token from the audit log. */
import type { ManagementClient } from './client.js';
import type { WireAuditRecord } from './contract.js';

export interface TokenHistory {
  /** Newest first, down to the creation of the token. */
  changes: readonly WireAuditRecord[];
  /** Whether changes between the last two are left out because of the limit. */
  isTruncated: boolean;
  /** The last hourly record of its use; null if no use is recorded. */
  lastUse: WireAuditRecord | null;
}

/**
 * Requests each kind of record separately: with an hourly record of its use, the changes of a token would be many pages apart.
 * Records older than the oldest record of a full page are left out, except for the creation of the token.
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
  const [uses, made, ...others] = await Promise.all([
    of('token.use', 1),
    of('token.create', 1),
    of('token.revoke', maxRecords),
    of('token.reactivate', maxRecords),
  ]);
  const from = others.flatMap(({ next, items }) => (next === null ? [] : [items.at(-1)?.time ?? '']));
  const isShown = ({ time }: WireAuditRecord) => from.every((oldest) => time >= oldest);
  const changes = others.flatMap(({ items }) => items).filter(isShown);
  changes.sort((one, other) => other.time.localeCompare(one.time));
  return { changes: [...changes, ...made.items], isTruncated: from.length > 0, lastUse: uses.items[0] ?? null };
}
