/** Requests without a management token: the daemon's probes `/live`, `/ready` and `/health`, and what the holder of a token may ask. */
import {
  ApiError,
  apiErrorOf,
  connectionProblem,
  type FetchInit,
  type FetchResponse,
  jsonOf,
  NOT_LLMP,
  Unreachable,
  withTimeout,
} from '../../daemon/api/client.js';
import { TOKEN_SELF_PATH, type TokenSelf } from '../../daemon/api/token-self.js';
import type { DaemonConnection } from './connection.js';

export interface Health {
  status: 'ready' | 'not ready';
  /** What the daemon needs and does not have; it is ready only if this is empty. */
  missing: string[];
  /** Parts that do not work at present, without which the daemon is still ready. */
  degraded: string[];
  uptime_s: number | null;
  /** The state of each dependency: ok, failing or off. */
  checks: Record<string, string>;
}

/** @throws {Unreachable} if the daemon does not respond, or the server is not llmp. */
export async function healthOf(connection: DaemonConnection, signal?: AbortSignal): Promise<Health> {
  const paths = ['/live', '/ready', '/health'];
  const [, ready, health] = await Promise.all(paths.map((path) => probe(connection, path, signal)));
  return {
    status: ready?.status === 200 ? 'ready' : 'not ready',
    missing: texts(ready?.body.missing),
    degraded: texts(ready?.body.degraded),
    uptime_s: typeof health?.body.uptime_s === 'number' ? health.body.uptime_s : null,
    checks: Object.fromEntries(
      Object.entries(health?.body.checks ?? {}).map(([name, result]) => [name, String(result)]),
    ),
  };
}

interface ProbeResponse {
  status: number;
  body: { status: string; missing?: unknown; degraded?: unknown; uptime_s?: unknown; checks?: object };
}

async function probe(connection: DaemonConnection, path: string, signal?: AbortSignal): Promise<ProbeResponse> {
  const { status, body } = await asked(connection, path, { signal }, async (response) => ({
    status: response.status,
    body: await jsonOf(response),
  }));
  // A probe of llmp always responds with 200 or 503 and a JSON object with `status`.
  const isProbe = typeof body === 'object' && body !== null && 'status' in body && [200, 503].includes(status);
  if (!isProbe) throw new Unreachable(NOT_LLMP);
  return { status, body: body as ProbeResponse['body'] };
}

const texts = (given: unknown) => (Array.isArray(given) ? given.map(String) : []);

/**
 * Asks a daemon about a token, as its holder.
 *
 * @param path where the daemon is behind a proxy, with its path in front.
 * @throws {ApiError}
 * @throws {Unreachable}
 */
export async function tokenSelf(
  connection: DaemonConnection,
  token: string,
  path = TOKEN_SELF_PATH,
): Promise<TokenSelf> {
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json' };
  const found = await asked(connection, path, { headers }, async (response) => {
    if (!response.ok) throw await apiErrorOf(response);
    return (await jsonOf(response)) as Partial<TokenSelf> | null;
  });
  if (typeof found?.expires_in_s !== 'number') throw new Unreachable(NOT_LLMP);
  return found as TokenSelf;
}

/** Ends a token, as its holder. One that has ended stays as it is. @throws {ApiError} @throws {Unreachable} */
export async function endToken(connection: DaemonConnection, token: string, signal?: AbortSignal): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json' };
  await asked(connection, TOKEN_SELF_PATH, { method: 'DELETE', headers, signal }, async (response) => {
    if (!response.ok && response.status !== 401) throw await apiErrorOf(response);
  });
}

/** Sends a request, and reads its response within the same timeout. @throws what `read` throws. @throws {Unreachable} */
export async function asked<T>(
  { server, fetch, timeoutMs }: DaemonConnection,
  path: string,
  { signal, headers = {}, ...more }: Partial<Omit<FetchInit, 'signal'>> & { signal?: AbortSignal | undefined },
  read: (response: FetchResponse) => Promise<T>,
): Promise<T> {
  try {
    return await withTimeout(timeoutMs, signal, async (limited) =>
      read(await fetch(new URL(path, server.url), { ...more, headers, redirect: 'error', signal: limited })),
    );
  } catch (error) {
    if (error instanceof ApiError || error instanceof Unreachable) throw error;
    throw new Unreachable(connectionProblem(error), { cause: error });
  }
}
