/** Applies changes: one function per kind of change, on the management API. */
import { ApiError, type ManagementClient, Unreachable } from '../../daemon/api/client.js';
import type { WireProjectChanged, WireTokenCreated } from '../../daemon/api/contract.js';
import type { ChangeRequest, Failure, Named, NewKey, ChangeResult } from '../state/exchange.js';
import { Secret } from '../state/secret.js';

const CONCURRENCY = 8;

export interface ChangeOptions {
  client: ManagementClient;
  /** Aborted to stop a bulk change, or the check of a key. */
  signal: AbortSignal;
  progress: (done: number, of: number) => void;
  failureOf: (error: unknown) => Failure;
}

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
    case 'create-project': {
      const body = { name: change.name, ...change.upstream };
      return storedKey(changing, change.key, (key, signal) => client.createProject({ ...body, ...key }, signal));
    }
    case 'update-project': {
      const { body, key } = change;
      const { id } = change.project;
      if (!key) return { ...nothing, done: 1, project: await client.updateProject(id, body) };
      return storedKey(changing, key, (fields, signal) => client.updateProject(id, { ...body, ...fields }, signal));
    }
    case 'revoke-all':
      return { ...nothing, done: (await client.revokeTokensOf(change.project.id)).revoked_count };
    case 'purge':
      return { ...nothing, done: (await client.purgeCache(change.body)).purged_count };
  }
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
  return { token, secret: new Secret(secret) };
}

/** Changes a few tokens at a time. Stops when the daemon is unreachable: the rest would fail one by one, each after its timeout. */
async function setActive(changing: ChangeOptions, tokens: readonly Named[], isActive: boolean): Promise<ChangeResult> {
  const [only] = tokens;
  if (tokens.length === 1 && only) {
    await changing.client.updateToken(only.id, { is_active: isActive });
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
        await changing.client.updateToken(token.id, { is_active: isActive });
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
