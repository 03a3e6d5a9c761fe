/** The daemon's probes `/live`, `/ready` and `/health`. They need no management token. */
import { connectionProblem, NOT_LLMP, Unreachable, withTimeout } from '../../daemon/api/client.js';
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

async function probe(
  { server, fetch, timeoutMs }: DaemonConnection,
  path: string,
  signal?: AbortSignal,
): Promise<ProbeResponse> {
  const { status, body } = await withTimeout(timeoutMs, signal, async (limited) => {
    const response = await fetch(new URL(path, server.url), { redirect: 'error', signal: limited });
    return { status: response.status, body: await response.json() };
  }).catch((error: unknown) => {
    if (error instanceof Unreachable) throw error;
    throw new Unreachable(error instanceof SyntaxError ? NOT_LLMP : connectionProblem(error), { cause: error });
  });
  // A probe of llmp always responds with 200 or 503 and a JSON object with `status`.
  const isProbe = typeof body === 'object' && body !== null && 'status' in body && [200, 503].includes(status);
  if (!isProbe) throw new Unreachable(NOT_LLMP);
  return { status, body: body as ProbeResponse['body'] };
}

const texts = (given: unknown) => (Array.isArray(given) ? given.map(String) : []);
