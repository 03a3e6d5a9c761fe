/** Determines the daemon that a command addresses, and its context. */
import { dirname, join, resolve } from 'node:path';
import { type Context, contextsPath, readContexts } from './contexts.js';
import { quoted, usage } from '../../console/failure.js';
import type { Globals } from '../globals.js';

export const DEFAULT_SERVER = 'http://127.0.0.1:8080';

export interface Destination {
  /** The address as given. It is validated when the connection is made. */
  server: string;
  /** Null if the server was given directly: the credentials and limits of a context are for its own server only. */
  context: (Context & { name: string }) | null;
}

/** The server from the command line or, without --context, from the environment. Both take precedence over the current context. */
export const givenServer = ({ server, context }: Globals, env: NodeJS.ProcessEnv): string | undefined =>
  server ?? (context === undefined ? env.LLMP_SERVER || undefined : undefined);

/** The server for messages if the contexts file cannot be used. */
export const serverWithoutContext = (globals: Globals, env: NodeJS.ProcessEnv) =>
  givenServer(globals, env) ?? DEFAULT_SERVER;

/** @throws {Failure} if the context does not exist, or the contexts file is invalid. */
export async function destinationOf(globals: Globals, env: NodeJS.ProcessEnv): Promise<Destination> {
  if (globals.server !== undefined && globals.context !== undefined) {
    throw usage('--server and --context exclude each other', { advice: 'Use one of them' });
  }
  const server = givenServer(globals, env);
  if (server !== undefined) return { server, context: null };
  const { current, contexts } = await readContexts(env);
  const name = globals.context ?? (env.LLMP_CONTEXT || current);
  if (name === null) return { server: DEFAULT_SERVER, context: null };
  const context = contexts[name];
  if (!context) throw usage(`there is no context ${quoted(name)}`, { advice: 'See: llmp context list' });
  const { tokenFile } = context;
  return {
    server: context.server,
    context: { ...context, name, ...(tokenFile !== undefined && { tokenFile: pathOf(tokenFile, env) }) },
  };
}

/** Expands `~/`. A relative path is relative to the folder of the contexts file. */
function pathOf(given: string, env: NodeJS.ProcessEnv): string {
  const path = given.startsWith('~/') && env.HOME ? join(env.HOME, given.slice(2)) : given;
  return resolve(dirname(contextsPath(env) ?? '.'), path);
}
