/** Applies changes: one function per kind of change, on the management API. */
import { ifProjectAsShown, ifTokenAsShown, type ShownProject, type ShownToken } from '../../daemon/api/if-shown.js';
import { ApiError, type ManagementClient, Unreachable } from '../../daemon/api/client.js';
import type {
  WireBatchUndone,
  WireOperatorCreated,
  WireProjectChanged,
  WireTokenCreated,
} from '../../daemon/api/contract.js';
import type { ChangeRequest, Named, NewKey, ChangeResult, UndoRequest } from '../state/exchange.js';
import { Secret } from '../state/secret.js';
import type { ChangeOptions } from './change-options.js';
import { issueAgain } from './issue-again.js';

const CONCURRENCY = 8;

const nothing: ChangeResult = { done: 0, doneIds: [], failures: [] };

/** @throws the client's error for a single change. With several tokens each token has its own failure in the result. */
export async function applyChange(changing: ChangeOptions, change: ChangeRequest): Promise<ChangeResult> {
  const { client } = changing;
  switch (change.what) {
    case 'revoke':
    case 'reactivate':
      return setActive(changing, change.tokens, change.what === 'reactivate');
    case 'create-token':
      return { ...nothing, done: 1, created: withHidden(await client.createToken(change.body)) };
    case 'update-token': {
      const { token, body } = change;
      await client.updateToken(token.id, body, await ifTokenAsShown(client, token));
      return { ...nothing, done: 1 };
    }
    case 'issue-again':
      return issueAgain(changing, change);
    case 'create-project': {
      const body = { name: change.name, ...change.upstream, ...change.policies };
      return storedKey(changing, change.key, (key, signal) => client.createProject({ ...body, ...key }, signal));
    }
    case 'update-project': {
      const { body, key, project } = change;
      const { id } = project;
      const { ifMatch } = isShown(project) ? await ifProjectAsShown(client, project) : ANY;
      if (!key) return { ...nothing, done: 1, project: await client.updateProject(id, body, { ifMatch }) };
      return storedKey(changing, key, (fields, signal) =>
        client.updateProject(id, { ...body, ...fields }, { ifMatch, signal }),
      );
    }
    case 'revoke-all':
      return { ...nothing, done: (await client.revokeTokensOf(change.project.id)).revoked_count };
    case 'purge':
      return { ...nothing, done: (await client.purgeCache(change.body)).purged_count };
    case 'create-operator':
      return { ...nothing, done: 1, created: operatorWithHidden(await client.createOperator(change.body)) };
    case 'activate-operator':
      await client.updateOperator(change.operator.id, { is_active: true });
      return { ...nothing, done: 1 };
    case 'deactivate-operator': {
      const query = change.keepsTokens ? { keep_tokens: 'true' } : {};
      const { revoked_count: revoked } = await client.deactivateOperator(change.operator.id, query);
      return { ...nothing, done: 1, revoked };
    }
    case 'undo':
      return undone(changing, change);
  }
}

const ANY = { ifMatch: '*' };

const isShown = (project: Named & Partial<ShownProject>): project is Named & ShownProject => 'updated_at' in project;

/** Revoking what somebody else has changed since it was shown does no harm, but reactivating it may. */
async function setOne(client: ManagementClient, token: Named & Partial<ShownToken>, isActive: boolean): Promise<void> {
  const { id, is_active, revoked_at, allow, limits, budget } = token;
  const isToCheck =
    isActive &&
    is_active !== undefined &&
    revoked_at !== undefined &&
    allow !== undefined &&
    limits !== undefined &&
    budget !== undefined;
  const options = isToCheck
    ? await ifTokenAsShown(client, { id, is_active, revoked_at, allow, limits, budget })
    : undefined;
  await client.updateToken(id, { is_active: isActive }, options);
}

/**
 * Only a check can be cancelled: without one the response comes at once.
 *
 * @param send sends a change, with these fields in addition to its own.
 */
async function storedKey(
  { signal }: ChangeOptions,
  { secret, isToCheck }: NewKey,
  send: (key: { api_key: string; check_key?: true }, signal?: AbortSignal) => Promise<WireProjectChanged>,
): Promise<ChangeResult> {
  const key = { api_key: secret.reveal() };
  if (!isToCheck) return { ...nothing, done: 1, project: await send(key) };
  const project = await send({ ...key, check_key: true }, signal);
  return { ...nothing, done: 1, project, keyCheck: project.key_check };
}

function withHidden({ token: secret, ...token }: WireTokenCreated): NonNullable<ChangeResult['created']> {
  return { of: { is: 'token', token }, secret: new Secret(secret) };
}

function operatorWithHidden({ secret, ...operator }: WireOperatorCreated): NonNullable<ChangeResult['created']> {
  return { of: { is: 'operator', operator }, secret: new Secret(secret) };
}

/** The daemon undoes a large batch in several parts. */
async function undone({ client, progress }: ChangeOptions, { batch, as }: UndoRequest): Promise<ChangeResult> {
  const all = as && 'tokens' in as ? as.tokens.length : 0;
  const undone: WireBatchUndone['undone'] = [];
  const skipped: WireBatchUndone['skipped'] = [];
  for (let cursor: string | null = null; ;) {
    const part: WireBatchUndone = await client.undoBatch(batch, cursor === null ? {} : { cursor });
    undone.push(...part.undone);
    skipped.push(...part.skipped);
    cursor = part.next;
    if (cursor === null)
      return { done: undone.length, doneIds: undone.flatMap(({ token_id: id }) => id ?? []), failures: [], skipped };
    const seen = undone.length + skipped.length;
    progress(seen, Math.max(seen, all));
  }
}

/** Changes a few tokens at a time. Stops when the daemon is unreachable: the rest would fail one by one, each after its timeout. */
async function setActive(
  changing: ChangeOptions,
  tokens: readonly (Named & Partial<ShownToken>)[],
  isActive: boolean,
): Promise<ChangeResult> {
  const [only] = tokens;
  if (tokens.length === 1 && only) {
    await setOne(changing.client, only, isActive);
    return { ...nothing, done: 1, doneIds: [only.id] };
  }
  const doneIds: string[] = [];
  const failures: ChangeResult['failures'][number][] = [];
  let next = 0;
  let isUnavailable = false;
  const isOver = () => isUnavailable || changing.signal.aborted;
  const work = async () => {
    for (let token = tokens[next++]; token && !isOver(); token = tokens[next++]) {
      try {
        await setOne(changing.client, token, isActive);
        doneIds.push(token.id);
      } catch (error) {
        failures.push({ of: token, failure: changing.failureOf(error) });
        isUnavailable ||= error instanceof Unreachable || (error instanceof ApiError && error.status === 401);
      }
      changing.progress(doneIds.length + failures.length, tokens.length);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  return { done: doneIds.length, doneIds, failures };
}
