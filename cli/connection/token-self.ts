/** Asks a daemon about a token, as its holder. */
import {
  ApiError,
  apiErrorOf,
  connectionProblem,
  jsonOf,
  NOT_LLMP,
  Unreachable,
  withTimeout,
} from '../../daemon/api/client.js';
import { TOKEN_SELF_PATH, type TokenSelf } from '../../daemon/api/token-self.js';
import type { DaemonConnection } from './connection.js';

/** @param path where the daemon is behind a proxy, with its path in front. @throws {ApiError} @throws {Unreachable} */
export async function tokenSelf(
  { server, fetch, timeoutMs }: DaemonConnection,
  token: string,
  path = TOKEN_SELF_PATH,
): Promise<TokenSelf> {
  try {
    const found = await withTimeout(timeoutMs, undefined, async (signal) => {
      const headers = { authorization: `Bearer ${token}`, accept: 'application/json' };
      const response = await fetch(new URL(path, server.url), { headers, redirect: 'error', signal });
      if (!response.ok) throw await apiErrorOf(response);
      return (await jsonOf(response)) as Partial<TokenSelf> | null;
    });
    if (typeof found?.expires_in_s !== 'number') throw new Unreachable(NOT_LLMP);
    return found as TokenSelf;
  } catch (error) {
    if (error instanceof ApiError || error instanceof Unreachable) throw error;
    throw new Unreachable(connectionProblem(error), { cause: error });
  }
}
