/** Revokes all tokens of a project: `token revoke --project-id` and `project revoke-tokens`. */
import { counted } from '../../daemon/api/formats.js';
import type { ManagementClient } from '../../daemon/api/client.js';
import type { WireTokensRevoked } from '../../daemon/api/contract.js';
import { confirmed } from '../batch.js';
import type { Invocation } from '../command.js';
import { EXIT } from '../../console/failure.js';
import { checkedId, wholeIdOf } from '../ids.js';
import { listed } from '../listing.js';
import { shortId, tokensRevokedView, tokenView } from '../../console/views.js';

export async function revokeTokensOf(given: string, isDryRun: boolean, invocation: Invocation): Promise<number> {
  const { output } = invocation;
  const checked = checkedId('project', given);
  if (!isDryRun) await confirmed(`Revoke all tokens of project ${checked}?`, invocation);
  const client = await invocation.connect();
  const id = await wholeIdOf(client, 'project', checked);
  if (isDryRun) return dryRun(client, id, invocation);

  const before = await client.tokens({ project_id: id, state: 'revoked', limit: '1' });
  const revoked = await client.revokeTokensOf(id);
  if (output.format !== 'table') await output.one({ ...revoked, project_id: id }, tokensRevokedView);
  output.note(
    `Revoked ${counted(revoked.revoked_count, 'token')} of project ${shortId(id)}.${undo(id, revoked, before.total)}`,
  );
  return EXIT.done;
}

/** Reactivating all revoked tokens is an exact undo only if no token was revoked before; those tokens must stay revoked. */
function undo(id: string, { revoked_count: count }: WireTokensRevoked, revokedBefore: number | null): string {
  if (count === 0) return '';
  const list = `llmp token list --project-id ${id} --state revoked`;
  if (revokedBefore === 0) return ` Undo: ${list} -o id | llmp token reactivate - --yes`;
  return ` To undo, reactivate tokens from: ${list}`;
}

async function dryRun(client: ManagementClient, id: string, { output }: Invocation): Promise<number> {
  const tokens = await listed((page) => client.tokens({ project_id: id, ...page }), Infinity, output);
  const changing = tokens.filter((token) => token.is_active);
  await output.list(changing, tokenView);
  output.note(`Would revoke ${counted(changing.length, 'token')} of project ${shortId(id)}. Nothing was changed.`);
  return EXIT.done;
}
