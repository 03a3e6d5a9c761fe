/** `llmp login`, `llmp logout` and `llmp whoami`: people log in with the company's identity provider. */
import { mkdir } from 'node:fs/promises';
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { ApiError, ManagementClient } from '../../daemon/api/client.js';
import type { WireSelf, WireSession, WireSessionCreated } from '../../daemon/api/contract.js';
import { isRetryable } from '../../daemon/api/follow-stream.js';
import { relativeTime } from '../../daemon/api/formats.js';
import { ceilingsShown } from '../../console/columns/access.js';
import { EXIT, Failure, failureOf, quoted, usage } from '../../console/failure.js';
import { replaceFile } from '../../console/own-file.js';
import { reportedUser } from '../../console/reported-user.js';
import type { View } from '../../console/table.js';
import { command, type Invocation } from '../command.js';
import { connect, connectionTo } from '../connection/connection.js';
import {
  type Context,
  type Contexts,
  isContextName,
  readContexts,
  sessionPath,
  writeContexts,
} from '../connection/contexts.js';
import { DEFAULT_SERVER, givenServer } from '../connection/destination.js';
import { serverOf } from '../connection/server.js';
import { allProjects } from '../ids.js';

export const loginCommand = command({
  path: ['login'],
  ignores: ['managementToken', 'managementTokenFile', 'reason'],
  summary: "log in with the company's identity provider",
  examples: [
    ['login --server https://llmp.example', 'log in to a daemon, which becomes the current context'],
    ['login', 'log in again to the daemon of the current context'],
    ['login -c prod --server https://llmp.example', 'call its context prod'],
  ],
  options: {},
  prints: () => sessionView.fields,
  async run(invocation) {
    const { shell, output } = invocation;
    const target = await targetOf(invocation);
    const { name, context, path } = target;
    const connection = connectionTo({ ...invocation, destination: () => ({ server: context.server, context: null }) });
    const { server, timeoutMs, fetch } = connection;
    if (server.isClearText) output.warn(`the session is sent to ${server.shown} in clear text; use https`);
    const client = new ManagementClient({
      server: server.url,
      managementToken: null,
      timeoutMs,
      frontEnd: 'cli',
      user: reportedUser(),
      fetch,
    });
    const created = await loggedIn(client, server.shown, invocation);
    await save(target, created, shell.env);
    const { id, actor, name: person, role, begun_at, expires_at: expiry, ended_at } = created;
    const session = { id, actor, name: person, role, begun_at, expires_at: expiry, ended_at };
    if (output.format !== 'table') await output.one(session, sessionView);
    output.note(`Logged in to ${server.shown} as ${person ?? actor}, ${role ?? 'everything'}, until ${expiry}.`);
    output.note(`The session is in ${path}, readable by you only. The current context is ${name}. End it: llmp logout`);
    for (const variable of ['LLMP_SERVER', 'LLMP_CONTEXT']) {
      const value = shell.env[variable];
      if (value && value !== name) output.warn(`${variable} is set and takes precedence over the current context`);
    }
    return EXIT.done;
  },
});

/** The context whose session it will be. */
interface Target {
  name: string;
  context: Context;
  /** The file of the session. */
  path: string;
  before: Contexts;
}

/** @throws {Failure} if the context has a management token of its own, which a session would replace. */
async function targetOf({ globals, shell: { env } }: Pick<Invocation, 'globals' | 'shell'>): Promise<Target> {
  const before = await readContexts(env);
  const { contexts, current } = before;
  const given = givenServer(globals, env);
  const named = globals.context ?? (given === undefined ? env.LLMP_CONTEXT || current : null);
  const name = named ?? nameFor(given ?? DEFAULT_SERVER, before);
  const known = contexts[name];
  const server = given ?? known?.server ?? (named === null ? DEFAULT_SERVER : undefined);
  if (server === undefined || !isContextName(name)) {
    throw usage(`there is no context ${quoted(name)}`, { advice: 'Add --server URL, or see: llmp context list' });
  }
  const { shown } = serverOf(server);
  const advice = `Log in with another context: llmp login -c NAME --server ${shown}`;
  if (known && serverOf(known.server).shown !== shown)
    throw usage(`the context ${name} is for ${known.server}`, { advice });
  if (known && hasOwnToken(known)) throw usage(`the context ${name} has a management token of its own`, { advice });
  return { name, context: { ...known, server }, path: sessionPath(env, name), before };
}

const hasOwnToken = ({ tokenCommand, tokenFile, sessionId }: Context): boolean =>
  tokenCommand !== undefined || (tokenFile !== undefined && sessionId === undefined);

/** The context of this server, or a new name: that of its host. */
function nameFor(server: string, { contexts }: Contexts): string {
  const { shown, socketPath, url } = serverOf(server);
  const own = Object.entries(contexts).find(
    ([, context]) => serverOf(context.server).shown === shown && !hasOwnToken(context),
  );
  if (own) return own[0];
  return socketPath === undefined ? new URL(url).host.replaceAll(/[^\w.-]+/g, '-').replace(/^-+/, '') : 'local';
}

/** Polls more often would be refused by the provider, and less often would let people wait. */
const INTERVAL_S = { least: 1, most: 60 };

/** Shows the address and the code, and waits until the person has entered it. @throws {Failure} if the code has expired. */
async function loggedIn(
  client: ManagementClient,
  shown: string,
  { shell, output }: Pick<Invocation, 'shell' | 'output'>,
): Promise<WireSessionCreated> {
  const begun = await client.beginDeviceLogin().catch((error: unknown) => {
    throw error instanceof ApiError && error.status === 404 ? noProvider(shown, error) : error;
  });
  const { device_code, user_code, verification_uri, verification_uri_complete, expires_in, interval } = begun;
  output.request(
    [
      'To log in, open this address in a browser, on any device, and enter the code:',
      `  ${verification_uri}`,
      `  ${user_code}`,
      ...(verification_uri_complete === null ? [] : [`With the code: ${verification_uri_complete}`]),
    ],
    { verification_uri, verification_uri_complete, user_code, expires_in },
  );
  const endsMs = shell.now() + expires_in * 1000;
  const never = new AbortController().signal;
  let waitS = Math.min(INTERVAL_S.most, Math.max(INTERVAL_S.least, interval));
  return output.during('waiting for the log-in', poll());

  async function poll(): Promise<WireSessionCreated> {
    for (;;) {
      await shell.pause(waitS * 1000, never);
      try {
        return await client.finishDeviceLogin({ device_code });
      } catch (error) {
        const isPending = error instanceof ApiError && error.code === 'login_pending';
        if (!isPending && !isRetryable(error)) throw error;
        if (shell.now() >= endsMs) throw codeExpired();
        const asked = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) : 0;
        waitS = Math.min(INTERVAL_S.most, Math.max(waitS, asked));
      }
    }
  }
}

const noProvider = (shown: string, { code, requestId }: ApiError) =>
  new Failure(EXIT.notFound, `the daemon at ${shown} has no identity provider`, {
    code,
    requestId,
    advice: 'Set MANAGEMENT_TOKEN to the secret of an operator, or ask who runs the daemon to set OIDC_ISSUER',
  });

const codeExpired = () =>
  new Failure(EXIT.refused, 'the code has expired', { code: 'code_expired', advice: 'Begin again: llmp login' });

/** Saves the secret in the file of the context, and makes that the current one. @throws {Failure} if that is not possible. */
async function save(
  { name, context, path, before }: Target,
  { secret, id }: WireSessionCreated,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    replaceFile(path, `${secret}\n`, 0o600, null);
  } catch (error) {
    throw usage(`cannot write ${path}; the session is lost`, {
      why: (error as NodeJS.ErrnoException).code ?? 'failed',
      cause: error,
    });
  }
  const contexts = { ...before.contexts, [name]: { ...context, tokenFile: path, sessionId: id } };
  await writeContexts(env, { current: name, contexts });
}

export const logoutCommand = command({
  path: ['logout'],
  ignores: ['managementToken', 'managementTokenFile', 'reason'],
  summary: 'end the session of the context',
  examples: [['logout', 'end the session, on the daemon and on this machine']],
  options: {},
  async run({ shell, globals, output, input, destination, server }) {
    const { context } = destination();
    if (context?.sessionId === undefined) {
      throw usage('you are not logged in', {
        ...(context && { why: `the context ${context.name} has no session` }),
        advice: 'Log in: llmp login',
      });
    }
    // Only the session's own secret ends it.
    const own = { ...globals, managementToken: undefined, managementTokenFile: undefined };
    const client = await connect({ shell, globals: own, output, input, destination }).catch(() => null);
    const failure = await client?.logOut(context.sessionId).then(
      () => null,
      (error: unknown) => (error instanceof ApiError && error.status === 401 ? null : failureOf(error, server)),
    );
    await forget(context.name, shell.env);
    if (failure) {
      throw new Failure(failure.exitCode, 'the session was removed from this machine only', {
        ...failure.explanation,
        why: failure.sentence,
        advice: 'On the daemon it ends by itself, 8 hours after the log-in',
      });
    }
    output.note(`Logged out of ${context.name}. Log in again: llmp login`);
    return EXIT.done;
  },
});

/** Removes the session from the context, with its file. */
async function forget(name: string, env: NodeJS.ProcessEnv): Promise<void> {
  const { current, contexts } = await readContexts(env);
  const context = { ...contexts[name] } as Context;
  delete context.tokenFile;
  delete context.sessionId;
  await writeContexts(env, { current, contexts: { ...contexts, [name]: context } });
  rmSync(sessionPath(env, name), { force: true });
}

const sessionView: View<WireSession> = {
  idOf: ({ id }) => id,
  fields: ['id', 'actor', 'name', 'role', 'begun_at', 'expires_at', 'ended_at'],
  columns: [],
};

export const whoamiCommand = command({
  path: ['whoami'],
  summary: 'show who you are, and what you may do',
  examples: [['whoami', 'show the role, the projects and the ceilings of the credential in use']],
  options: {},
  async run({ output, connect }) {
    const client = await connect();
    const self = await client.self();
    const names = output.isForPeople && self.projects !== null ? await namesOf(client) : new Map<string, string>();
    await output.one(self, selfView(names));
    return EXIT.done;
  },
});

const namesOf = async (client: ManagementClient) =>
  new Map((await allProjects(client)).map(({ id, name }) => [id, name]));

/** @param names of projects, by their IDs. */
const selfView = (names: ReadonlyMap<string, string>): View<WireSelf> => ({
  idOf: ({ actor }) => actor,
  fields: ['actor', 'name', 'role', 'projects', 'ceilings', 'expires_at'],
  columns: [],
  details: {
    name: ({ name }) => name ?? '',
    role: ({ role }) => role ?? 'everything: this is the management token',
    projects: ({ projects }) => projects?.map((id) => names.get(id) ?? id).join(', ') ?? 'all',
    ceilings: ({ ceilings }) => ceilingsShown(ceilings),
    expires_at: ({ expires_at: at }, render) => (at === null ? 'never' : `${at} (${relativeTime(at, render.now)})`),
  },
});
