/** Where the daemon is, with which management token it is asked, and over what. */
import { credential } from '../config/kinds.js';
import { ManagementClient } from '../daemon/api/client.js';
import { EXIT, Failure } from './failure.js';
import type { Globals } from './globals.js';
import type { Input } from './input.js';
import type { Output } from './output.js';
import { type Server, serverOf, serverText } from './server.js';
import type { Shell } from './shell.js';

const DEFAULT_TIMEOUT_MS = 30_000;

export interface Connection {
  server: Server;
  fetch: typeof fetch;
  timeoutMs: number;
}

/** How requests reach the daemon, with or without a management token. @throws {Failure} for a server that cannot be. */
export async function connectionTo(shell: Shell, globals: Globals, output: Output): Promise<Connection> {
  const server = serverOf(serverText(globals, shell.env));
  const ask = server.socketPath === undefined ? fetch : await fetchOver(server.socketPath);
  return { server, fetch: observed(ask, server.shown, output), timeoutMs: globals.timeout ?? DEFAULT_TIMEOUT_MS };
}

/** @throws {Failure} with exit 2 for a server that cannot be, 3 without a usable management token. */
export async function connect(shell: Shell, globals: Globals, input: Input, output: Output): Promise<ManagementClient> {
  const { server, ...connection } = await connectionTo(shell, globals, output);
  const managementToken = await managementTokenOf(shell.env, globals, input, output);
  if (server.isClearText) output.warn(`the management token goes to ${server.shown} in clear text; use https`);
  return new ManagementClient({
    server: server.url,
    managementToken,
    frontEnd: 'cli',
    reason: globals.reason,
    ...connection,
  });
}

async function managementTokenOf(
  env: NodeJS.ProcessEnv,
  globals: Globals,
  input: Input,
  output: Output,
): Promise<string> {
  const token = await foundToken(env, globals, input, output);
  if (credential.parse(token) !== undefined) return token;
  throw new Failure(EXIT.managementToken, `the management token must be ${credential.accepts}`, {
    code: 'management_token_malformed',
  });
}

async function foundToken(env: NodeJS.ProcessEnv, globals: Globals, input: Input, output: Output): Promise<string> {
  const what = 'the management token';
  if (globals.managementToken !== undefined) {
    output.warn(
      '--management-token can be seen by others with `ps`; prefer --management-token-file or MANAGEMENT_TOKEN',
    );
    return globals.managementToken;
  }
  if (globals.managementTokenFile !== undefined) return input.secretFrom(globals.managementTokenFile, what);
  if (env.MANAGEMENT_TOKEN) return env.MANAGEMENT_TOKEN;
  if (env.MANAGEMENT_TOKEN_FILE) return input.secretFrom(env.MANAGEMENT_TOKEN_FILE, what);
  if (input.canAsk) return input.hidden('Management token:');
  throw new Failure(EXIT.managementToken, 'no management token', {
    code: 'management_token_missing',
    advice: 'Set MANAGEMENT_TOKEN or MANAGEMENT_TOKEN_FILE, or use --management-token-file',
  });
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
