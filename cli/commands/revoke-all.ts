/** Every token of a project at once: `token revoke --project-id` and `project revoke-tokens`. */
import type { ManagementClient } from '../../daemon/api/client.js';
import type { WireTokensRevoked } from '../../daemon/api/contract.js';
import { confirmed, counted } from '../batch.js';
import type { Invocation } from '../command.js';
import { EXIT } from '../../console/failure.js';
import { checkedId, wholeIdOf } from '../ids.js';
import { listed } from '../listing.js';
import { shortId, tokensRevokedView, tokenView } from '../../console/views.js';

export async function revokeTokensOf(given: string, isRehearsal: boolean, invocation: Invocation): Promise<number> {
  const { output } = invocation;
  const checked = checkedId('project', given);
  if (!isRehearsal) await confirmed(`Revoke every token of project ${checked}?`, invocation);
  const client = await invocation.connect();
  const id = await wholeIdOf(client, 'project', checked);
  if (isRehearsal) return rehearse(client, id, invocation);

  const before = await client.tokens({ project_id: id, state: 'revoked', limit: '1' });
  const revoked = await client.revokeTokensOf(id);
  if (output.format !== 'table') await output.one({ ...revoked, project_id: id }, tokensRevokedView);
  output.note(
    `Revoked ${counted(revoked.revoked_count, 'token')} of project ${shortId(id)}.${undo(id, revoked, before.total)}`,
  );
  return EXIT.done;
}

/** The list of revoked tokens is the exact undo only if it was empty before: those in it are to stay revoked. */
function undo(id: string, { revoked_count: count }: WireTokensRevoked, revokedBefore: number | null): string {
  if (count === 0) return '';
  const list = `llmp token list --project-id ${id} --state revoked`;
  if (revokedBefore === 0) return ` Undo: ${list} -o id | llmp token reactivate - --yes`;
  return ` To undo, choose from: ${list}`;
}

async function rehearse(client: ManagementClient, id: string, { output }: Invocation): Promise<number> {
  const tokens = await listed((page) => client.tokens({ project_id: id, ...page }), Infinity, output);
  const changing = tokens.filter((token) => token.is_active);
  await output.list(changing, tokenView);
  output.note(`Would revoke ${counted(changing.length, 'token')} of project ${shortId(id)}. Nothing was changed.`);
  return EXIT.done;
}
