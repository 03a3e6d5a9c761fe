/** What became of one token. */
import type { ManagementClient } from './client.js';
import type { WireAuditRecord } from './contract.js';

export interface TokenHistory {
  /** The newest first, down to how the token was made. */
  changes: readonly WireAuditRecord[];
  /** Between the last two of them there are more than were asked for. */
  isCut: boolean;
  /** Uses are counted by the hour; null: it was never used, as far as that is recorded. */
  lastUse: WireAuditRecord | null;
}

/**
 * Each kind is asked for by itself: a token that is used leaves a record of that every hour, and its changes would be pages away.
 * What is older than the oldest of a full page is left out, except for how the token was made.
 *
 * @param most records of each kind of change; a token is made only once.
 * @param enough gives it up.
 */
export async function historyOf(
  client: ManagementClient,
  id: string,
  most: number,
  enough?: AbortSignal,
): Promise<TokenHistory> {
  const of = (action: string, limit: number) =>
    client.auditRecords({ token_id: id, action, limit: String(limit) }, enough);
  const [uses, made, ...others] = await Promise.all([
    of('token.use', 1),
    of('token.create', 1),
    of('token.revoke', most),
    of('token.reactivate', most),
  ]);
  const from = others.flatMap(({ next, items }) => (next === null ? [] : [items.at(-1)?.time ?? '']));
  const isShown = ({ time }: WireAuditRecord) => from.every((oldest) => time >= oldest);
  const changes = others.flatMap(({ items }) => items).filter(isShown);
  changes.sort((one, other) => other.time.localeCompare(one.time));
  return { changes: [...changes, ...made.items], isCut: from.length > 0, lastUse: uses.items[0] ?? null };
}
