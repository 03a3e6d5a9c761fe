/** Which daemon a command goes to, and what the operator keeps about it. */
import { dirname, join, resolve } from 'node:path';
import { type Context, contextsPath, readContexts } from './contexts.js';
import { quoted, usage } from '../../console/failure.js';
import type { Globals } from '../globals.js';

const DEFAULT_SERVER = 'http://127.0.0.1:8080';

export interface Destination {
  /** As it was given; whether it can be one is found out when it is gone to. */
  server: string;
  /** None where the server was named by itself: a context's credentials and limits are for its own server alone. */
  context: (Context & { name: string }) | null;
}

/** What the line says comes first, then the environment, then the context in use. */
const saidServer = ({ server, context }: Globals, env: NodeJS.ProcessEnv): string | undefined =>
  server ?? (context === undefined ? env.LLMP_SERVER || undefined : undefined);

/** For messages, when nothing is known of contexts. */
export const serverWithoutContext = (globals: Globals, env: NodeJS.ProcessEnv) =>
  saidServer(globals, env) ?? DEFAULT_SERVER;

/** @throws {Failure} for a context that is not there, or a file that cannot be understood. */
export async function destinationOf(globals: Globals, env: NodeJS.ProcessEnv): Promise<Destination> {
  if (globals.server !== undefined && globals.context !== undefined) {
    throw usage('--server and --context exclude each other', { advice: 'Give one' });
  }
  const server = saidServer(globals, env);
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

/** As a shell would read it, but from the folder that the contexts are in. */
function pathOf(given: string, env: NodeJS.ProcessEnv): string {
  const path = given.startsWith('~/') && env.HOME ? join(env.HOME, given.slice(2)) : given;
  return resolve(dirname(contextsPath(env) ?? '.'), path);
}
