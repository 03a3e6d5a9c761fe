/** Connections to a daemon: its address, how to send requests, and the management token. */
import { randomUUID } from 'node:crypto';
import { type Fetch, ManagementClient } from '../../daemon/api/client.js';
import { confirmed } from '../batch.js';
import type { Invocation } from '../command.js';
import type { Destination } from './destination.js';
import { DEFAULT_TIMEOUT_MS } from '../globals.js';
import { EXIT, Failure } from '../../console/failure.js';
import { reportedUser } from '../../console/reported-user.js';
import { fetchWithHttp } from './http-client.js';
import type { Output } from '../output.js';
import { type Server, serverOf } from './server.js';
import { managementTokenOf } from './token-source.js';

export interface DaemonConnection {
  server: Server;
  fetch: Fetch;
  timeoutMs: number;
}

export type ConnectInputs = Pick<Invocation, 'shell' | 'globals' | 'input' | 'output' | 'destination'>;

/** A connection that shows progress and traces requests, without a management token. @throws {Failure} if the server address is invalid. */
export function connectionTo(connecting: Pick<ConnectInputs, 'globals' | 'output' | 'destination'>): DaemonConnection {
  const connection = quietConnectionTo(connecting);
  return { ...connection, fetch: observed(connection.fetch, connection.server.shown, connecting.output) };
}

/** The same without progress and traces. */
export function quietConnectionTo({
  globals,
  destination,
}: Pick<ConnectInputs, 'globals' | 'destination'>): DaemonConnection {
  const server = serverOf(destination().server);
  return { server, fetch: fetchWithHttp(server.socketPath), timeoutMs: globals.timeout ?? DEFAULT_TIMEOUT_MS };
}

/** A connection with its management token and context. */
export interface AuthenticatedConnection extends DaemonConnection {
  managementToken: string;
  context: Destination['context'];
}

/** @throws {Failure} with exit code 2 if the server address is invalid, 3 without a usable management token. */
export async function connectWithToken(connecting: ConnectInputs): Promise<AuthenticatedConnection> {
  const connection = quietConnectionTo(connecting);
  const { server } = connection;
  const { context } = connecting.destination();
  const managementToken = await managementTokenOf({ ...connecting, context });
  if (server.isClearText) {
    connecting.output.warn(`the management token is sent to ${server.shown} in clear text; use https`);
  }
  return { ...connection, managementToken, context };
}

/** @throws {Failure} as `connectWithToken` does. */
export async function connect(connecting: ConnectInputs): Promise<ManagementClient> {
  const { globals, output } = connecting;
  const { server, context, managementToken, timeoutMs, ...there } = await connectWithToken(connecting);
  return new ManagementClient({
    server: server.url,
    managementToken,
    timeoutMs,
    frontEnd: 'cli',
    user: reportedUser(),
    reason: globals.reason,
    batch: randomUUID(), // All changes of one command.
    beforeChange: changeGuardOf(context, connecting),
    fetch: observed(there.fetch, server.shown, output),
  });
}

/** @returns the check that a context requires before changes: a read-only context rejects them, a protected one asks once per command. */
function changeGuardOf(
  context: Destination['context'],
  asking: Pick<ConnectInputs, 'globals' | 'input'>,
): (() => Promise<void>) | undefined {
  if (context?.readonly) {
    const failure = new Failure(EXIT.refused, `context ${context.name} is read-only; nothing was sent`, {
      code: 'context_readonly',
      advice: `Allow changes: llmp context add ${context.name} --no-readonly`,
    });
    return () => Promise.reject(failure);
  }
  if (!context?.protected) return undefined;
  let answer: Promise<void> | undefined;
  return () => (answer ??= confirmed(`Context ${context.name} is protected. Make this change?`, asking));
}

/**
 * How long an idle connection stays open for the next request. Lists are polled every two seconds; the connections that a burst of requests has opened
 * are closed soon after it, whatever time the daemon offers.
 */
const MAX_IDLE_MS = 4_000;

/** The complete `fetch`, for long-running programs. The global one cannot use Unix sockets, so undici is loaded for them. */
export async function fullFetchTo({ socketPath }: Server): Promise<typeof fetch> {
  const options = { keepAliveMaxTimeout: MAX_IDLE_MS };
  if (socketPath === undefined) {
    const dispatcher = ownDispatcher(options);
    return (url, init) => fetch(url, { ...init, dispatcher } as RequestInit);
  }
  const undici = await import('undici');
  const dispatcher = new undici.Agent({ ...options, connect: { socketPath } });
  const overSocket = (url: URL | string, init?: object) => undici.fetch(url, { ...init, dispatcher });
  return overSocket as unknown as typeof fetch;
}

/** A dispatcher of the undici within Node.js: loading another one would take 150 ms and 11 MB. @returns undefined if Node.js has none. */
function ownDispatcher(options: object): object | undefined {
  if (typeof globalThis.Response !== 'function') return undefined; // Also makes Node.js load it.
  const ofInterface = (version: 1 | 2) =>
    Reflect.get(globalThis, Symbol.for(`undici.globalDispatcher.${version}`)) as object | undefined;
  // The second is missing up to Node 22. From Node 26 on, the first only wraps another dispatcher.
  const current = ofInterface(2) ?? ofInterface(1);
  return current && new (current.constructor as new (given: object) => object)(options);
}

/** Shows progress while it waits for the daemon, and with -v prints each request with its status and request ID. */
function observed(ask: Fetch, shown: string, output: Output): Fetch {
  return async (url, init) => {
    const { pathname, search } = url;
    const response = await output.during(`waiting for ${shown}`, ask(url, init));
    const id = response.headers.get('x-request-id') ?? '-';
    output.trace(`${init.method ?? 'GET'} ${pathname}${search} ${response.status} ${id}`);
    return response;
  };
}
