/** Changes, and how the management API makes each. */
import { ApiError, type ManagementClient, Unreachable } from '../../daemon/api/client.js';
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import type { Change, Failure, Named, Outcome } from '../state/exchange.js';
import { Hidden } from '../state/hidden.js';

const AT_A_TIME = 8;

export interface Changing {
  client: ManagementClient;
  /** Nothing more of it is to be done. */
  enough: AbortSignal;
  progress: (done: number, of: number) => void;
  failureOf: (error: unknown) => Failure;
}

const nothing: Outcome = { done: 0, doneIds: [], failures: [] };

/** @throws what the client does, where the change is one alone; of several tokens each has its own failure. */
export async function make(changing: Changing, change: Change): Promise<Outcome> {
  const { client } = changing;
  switch (change.what) {
    case 'revoke':
    case 'reactivate':
      return setActive(changing, change.tokens, change.what === 'reactivate');
    case 'create-token':
      return { ...nothing, done: 1, created: withHidden(await client.createToken(change.body)) };
    case 'create-project': {
      const project = await client.createProject({ name: change.name, api_key: change.key.reveal() });
      return { ...nothing, done: 1, project };
    }
    case 'update-project': {
      const key = change.key && { api_key: change.key.reveal() };
      return {
        ...nothing,
        done: 1,
        project: await client.updateProject(change.project.id, { ...change.body, ...key }),
      };
    }
    case 'revoke-all':
      return { ...nothing, done: (await client.revokeTokensOf(change.project.id)).revoked_count };
    case 'purge':
      return { ...nothing, done: (await client.purgeCache(change.body)).purged_count };
  }
}

function withHidden({ token: secret, ...token }: WireTokenCreated): NonNullable<Outcome['created']> {
  return { token, secret: new Hidden(secret) };
}

/** A few at a time. When the daemon is away the rest is left: it would fail one by one, each after its time limit. */
async function setActive(changing: Changing, tokens: readonly Named[], isActive: boolean): Promise<Outcome> {
  const [only] = tokens;
  if (tokens.length === 1 && only) {
    await changing.client.updateToken(only.id, { is_active: isActive });
    return { ...nothing, done: 1, doneIds: [only.id] };
  }
  const doneIds: string[] = [];
  const failures: Outcome['failures'][number][] = [];
  let next = 0;
  let isAway = false;
  const isOver = () => isAway || changing.enough.aborted;
  const work = async () => {
    for (let token = tokens[next++]; token && !isOver(); token = tokens[next++]) {
      try {
        await changing.client.updateToken(token.id, { is_active: isActive });
        doneIds.push(token.id);
      } catch (error) {
        failures.push({ of: token, failure: changing.failureOf(error) });
        isAway ||= error instanceof Unreachable || (error instanceof ApiError && error.status === 401);
      }
      changing.progress(doneIds.length + failures.length, tokens.length);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  return { done: doneIds.length, doneIds, failures };
}
