/** Changes many tokens: those of a query, with `token revoke --query` and `token reactivate --query`, and all of a project: `token revoke --project-id` and `project revoke-tokens`. */
import { counted, exact } from '../../daemon/api/formats.js';
import type { ManagementClient } from '../../daemon/api/client.js';
import type { WireToken, WireTokensRevoked } from '../../daemon/api/contract.js';
import { type BatchChange, type BatchCommand, changeEach, confirmed } from '../batch.js';
import type { Invocation } from '../command.js';
import type { Option } from '../option.js';
import { EXIT, usage } from '../../console/failure.js';
import { checkedId, wholeIdOf } from '../ids.js';
import { ifTokenAsShown } from '../../daemon/api/if-shown.js';
import { listed } from '../listing.js';
import { queryIn } from '../query.js';
import { shortId } from '../../console/columns/cell-text.js';
import { tokensRevokedView, tokenView } from '../../console/views.js';

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

const SAMPLE_SIZE = 5;

/**
 * Revokes or reactivates the tokens that a query selects and that are not in that state yet. The tokens are selected once: those that are
 * shown before the confirmation are those that are changed.
 *
 * @returns 0 only if each of them was changed.
 */
export async function changeSelected(
  line: string,
  invocation: Invocation<{ dryRun: Option<boolean> }>,
  command: BatchCommand<WireToken> & { change: BatchChange<WireToken> },
): Promise<number> {
  const { output, options } = invocation;
  const { verb, pastTense, isApplied } = command.change;
  // It would select all tokens of all projects.
  if (line.trim() === '') throw usage('the query is empty', { advice: 'See: llmp help query' });
  const client = await invocation.connect();
  const { query } = await queryIn([line], 'tokens', client);
  const matching = await listed((page) => client.tokens({ ...query, ...page }), Infinity, output);
  const tokens = matching.filter((token) => !isApplied(token));
  if (options.dryRun) {
    await output.list(tokens, tokenView);
    output.note(`Would ${verb.toLowerCase()} ${counted(tokens.length, 'token')}. Nothing was changed.`);
    return EXIT.done;
  }
  if (tokens.length === 0) {
    await output.list(tokens, tokenView);
    const otherwise = pastTense === 'Revoked' ? 'not revoked' : 'revoked';
    output.note(`No matching tokens${matching.length === 0 ? '' : ` that are ${otherwise}`}.`);
    return EXIT.done;
  }
  if (invocation.input.canAsk && !invocation.globals.yes) {
    for (const { id, name, project_name: project, state } of tokens.slice(0, SAMPLE_SIZE)) {
      output.note(`  ${shortId(id)}  ${[name, project, state].filter(Boolean).join(', ')}`);
    }
    if (tokens.length > SAMPLE_SIZE) output.note(`  and ${exact(tokens.length - SAMPLE_SIZE)} more`);
  }
  await confirmed(`${verb} ${counted(tokens.length, 'token')}?`, invocation);
  const ids = tokens.map(({ id }) => id);
  const shown = new Map(tokens.map((token) => [token.id, token]));
  const { apply } = command.change;
  const ifShown = async (client: ManagementClient, id: string) => {
    const token = shown.get(id);
    // Revoking what somebody else has revoked since does no harm.
    return token?.is_active === false ? apply(client, id, await ifTokenAsShown(client, token)) : apply(client, id);
  };
  return changeEach(ids, true, client, invocation, { ...command, change: { ...command.change, apply: ifShown } });
}
