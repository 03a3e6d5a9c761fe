/** What a Redis server says about itself, also to a user who may not run INFO. */
import { type Redis, ReplyError } from 'ioredis';

export interface ServerFacts {
  /** For example `7.0.15`; null if unknown. */
  version: string | null;
  isReplica: boolean;
  /** Why llmp cannot use a server of this kind, and what to do; null if it can. */
  misfit: string | null;
  /** All of INFO; null if the user may not run it. */
  info: ReadonlyMap<string, string> | null;
}

const MISFITS: ReadonlyMap<string | undefined, string> = new Map([
  [
    'cluster',
    'the server is in cluster mode, which spreads keys over servers, and llmp needs all of its keys on one. Use a Redis without cluster mode',
  ],
  ['sentinel', 'the server is a Sentinel, which stores no keys. Use the address of the primary'],
]);

/** Replies of a server in cluster mode that has not said so. */
const OF_A_CLUSTER = /^(?:MOVED|ASK|CROSSSLOT) |a non local key in a cluster node/;

/** @param message of an error reply. @returns why llmp cannot use the server; null if the reply does not show it. */
export const misfitIn = (message: string): string | null =>
  OF_A_CLUSTER.test(message) ? (MISFITS.get('cluster') ?? null) : null;

/** @throws if the server does not reply. A refusal is a reply. */
export async function factsOf(client: Redis): Promise<ServerFacts> {
  // No ACL can forbid HELLO. Servers before Redis 6 do not know it.
  const hello = pairsIn(await client.call('HELLO', '2').catch(nullIfRefused));
  const text = await client.info().catch(nullIfRefused);
  const info = text === null ? null : linesIn(text);
  const mode = info?.get('redis_mode') ?? hello.get('mode');
  return {
    version: info?.get('redis_version') ?? hello.get('version') ?? null,
    isReplica: info?.get('role') === 'slave' || hello.get('role') === 'replica',
    misfit: MISFITS.get(mode) ?? null,
    info,
  };
}

function nullIfRefused(error: unknown): null {
  if (error instanceof ReplyError) return null;
  throw error;
}

/** Names and values in turn. */
function pairsIn(reply: unknown): ReadonlyMap<string, string> {
  const words = Array.isArray(reply) ? reply.map(String) : [];
  return new Map(words.flatMap((word, index) => (index % 2 === 0 ? [[word, words[index + 1] ?? '']] : [])));
}

const linesIn = (info: string): ReadonlyMap<string, string> =>
  new Map([...info.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name = '', value = '']) => [name, value]));
