/** What a daemon says of itself to anybody: `/live`, `/ready` and `/health`. They need no management token. */
import { connectionProblem, NOT_LLMP, Unreachable, within } from '../../daemon/api/client.js';
import type { Connection } from './connection.js';

export interface Health {
  status: 'ready' | 'not ready';
  /** What it lacks to be ready. */
  missing: string[];
  /** What it does without for now. */
  degraded: string[];
  uptime_s: number | null;
  /** What each thing it depends on is: ok, failing or off. */
  checks: Record<string, string>;
}

/** @throws {Unreachable} when nobody answers, or it is not llmp. */
export async function healthOf(connection: Connection, enough?: AbortSignal): Promise<Health> {
  const paths = ['/live', '/ready', '/health'];
  const [, ready, health] = await Promise.all(paths.map((path) => probe(connection, path, enough)));
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

interface Answer {
  status: number;
  body: { status: string; missing?: unknown; degraded?: unknown; uptime_s?: unknown; checks?: object };
}

async function probe({ server, fetch, timeoutMs }: Connection, path: string, enough?: AbortSignal): Promise<Answer> {
  const { status, body } = await within(timeoutMs, enough, async (signal) => {
    const response = await fetch(new URL(path, server.url), { redirect: 'error', signal });
    return { status: response.status, body: await response.json() };
  }).catch((error: unknown) => {
    if (error instanceof Unreachable) throw error;
    throw new Unreachable(error instanceof SyntaxError ? NOT_LLMP : connectionProblem(error), { cause: error });
  });
  // Whatever their answer, the probes of llmp are 200 or 503 and say so in words.
  const isProbe = typeof body === 'object' && body !== null && 'status' in body && [200, 503].includes(status);
  if (!isProbe) throw new Unreachable(NOT_LLMP);
  return { status, body: body as Answer['body'] };
}

const texts = (given: unknown) => (Array.isArray(given) ? given.map(String) : []);
