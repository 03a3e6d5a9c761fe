/** How a daemon is asked, and with which management token. */
import { ManagementClient } from '../../daemon/api/client.js';
import { confirmed } from '../batch.js';
import type { Invocation } from '../command.js';
import type { Destination } from './destination.js';
import { EXIT, Failure } from '../../console/failure.js';
import type { Output } from '../output.js';
import { type Server, serverOf } from './server.js';
import { managementTokenOf } from './token-source.js';

const DEFAULT_TIMEOUT_MS = 30_000;

export interface Connection {
  server: Server;
  fetch: typeof fetch;
  timeoutMs: number;
}

export type Connecting = Pick<Invocation, 'shell' | 'globals' | 'input' | 'output' | 'destination'>;

/** How requests reach the daemon, with or without a management token. @throws {Failure} for a server that cannot be. */
export async function connectionTo(
  connecting: Pick<Connecting, 'globals' | 'output' | 'destination'>,
): Promise<Connection> {
  const connection = await wayTo(connecting);
  return { ...connection, fetch: observed(connection.fetch, connection.server.shown, connecting.output) };
}

/** The same, without a word of what is asked there. */
export async function wayTo({
  globals,
  destination,
}: Pick<Connecting, 'globals' | 'destination'>): Promise<Connection> {
  const server = serverOf(destination().server);
  const ask = server.socketPath === undefined ? fetch : await fetchOver(server.socketPath);
  return { server, fetch: ask, timeoutMs: globals.timeout ?? DEFAULT_TIMEOUT_MS };
}

/** A daemon, and what it takes to ask it. */
export interface Reach extends Connection {
  managementToken: string;
  context: Destination['context'];
}

/** @throws {Failure} with exit 2 for a server that cannot be, 3 without a usable management token. */
export async function reach(connecting: Connecting): Promise<Reach> {
  const connection = await wayTo(connecting);
  const { server } = connection;
  const { context } = connecting.destination();
  const managementToken = await managementTokenOf({ ...connecting, context });
  if (server.isClearText) {
    connecting.output.warn(`the management token goes to ${server.shown} in clear text; use https`);
  }
  return { ...connection, managementToken, context };
}

/** @throws {Failure} as `reach` does. */
export async function connect(connecting: Connecting): Promise<ManagementClient> {
  const { globals, output } = connecting;
  const { server, context, managementToken, timeoutMs, ...there } = await reach(connecting);
  return new ManagementClient({
    server: server.url,
    managementToken,
    timeoutMs,
    frontEnd: 'cli',
    reason: globals.reason,
    beforeChange: guardOf(context, connecting),
    fetch: observed(there.fetch, server.shown, output),
  });
}

/** What a context asks of changes; once for all of a command's. */
function guardOf(
  context: Destination['context'],
  asking: Pick<Connecting, 'globals' | 'input'>,
): (() => Promise<void>) | undefined {
  if (context?.readonly) {
    const failure = new Failure(EXIT.refused, `context ${context.name} is read-only, nothing was sent`, {
      code: 'context_readonly',
      advice: `To change that: llmp context add ${context.name} --no-readonly`,
    });
    return () => Promise.reject(failure);
  }
  if (!context?.protected) return undefined;
  let answer: Promise<void> | undefined;
  return () => (answer ??= confirmed(`${context.name} is protected. Change it?`, asking));
}

/** undici has no switch for sockets in the global fetch, and is loaded only for this. */
async function fetchOver(socketPath: string): Promise<typeof fetch> {
  const undici = await import('undici');
  const dispatcher = new undici.Agent({ connect: { socketPath } });
  const overSocket = (url: URL | string, init?: object) => undici.fetch(url, { ...init, dispatcher });
  return overSocket as unknown as typeof fetch;
}

/** Shows progress while the daemon is being waited for, and with -v each request and how it went. */
function observed(ask: typeof fetch, shown: string, output: Output): typeof fetch {
  return async (url, init) => {
    const { pathname, search } = new URL(url instanceof Request ? url.url : url);
    const response = await output.during(`waiting for ${shown}`, ask(url, init));
    const id = response.headers.get('x-request-id') ?? '-';
    output.trace(`${init?.method ?? 'GET'} ${pathname}${search} ${response.status} ${id}`);
    return response;
  };
}
