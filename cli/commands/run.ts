/** `llmp run`: a token for as long as a command runs. */
import { constants } from 'node:os';
import { basename } from 'node:path';
import type { Kind } from '../../config/kinds.js';
import { ApiError, type ManagementClient } from '../../daemon/api/client.js';
import type { TokenCreate, WireToken, WireTokenCreated } from '../../daemon/api/contract.js';
import { mayPass } from '../../daemon/api/followed.js';
import { command, type Invocation } from '../command.js';
import { value } from '../option.js';
import { visible } from '../../console/escape.js';
import { EXIT, Failure, failureOf, usage } from '../../console/failure.js';
import { issuingOptions, tokenWanted } from './issuing.js';
import { serverOf } from '../connection/server.js';
import { Signals } from '../signals.js';
import { shortId } from '../../console/views.js';
import { MAX_NAME_LENGTH } from '../../daemon/api/vocabulary.js';

const baseUrl: Kind<string> = {
  accepts: 'http://… or https://…, without credentials',
  parse(given) {
    const url = URL.canParse(given) ? new URL(given) : undefined;
    const isPlain = url && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash;
    return isPlain ? given : undefined;
  },
};

export const runCommand = command({
  path: ['run'],
  summary: 'run a command with a temporary token, revoked when the command ends',
  examples: [
    ['run -- python3 batch.py', 'sets OPENAI_API_KEY and OPENAI_BASE_URL for the command'],
    ['run --project-id web --duration 30m --max-requests 500 -- npm test', 'for up to 30 minutes and 500 requests'],
  ],
  argument: {
    name: 'CMD',
    meaning: 'the command and its arguments',
    required: true,
    many: true,
    isCommandLine: true,
  },
  options: {
    ...issuingOptions(1, "what it is for; the command's name unless given"),
    baseUrl: value('--base-url <URL>', baseUrl, 'base URL for the command (default: /v1 of the server)'),
  },
  /** @returns the exit code of the command, 128 and the signal's number when a signal ended it. */
  async run(invocation) {
    const { args, options, shell, output } = invocation;
    const [file = '', ...rest] = args;
    const url = options.baseUrl ?? baseUrlOf(invocation.destination().server);
    // Whoever reads what is said may be gone before the end: that must not cost the revocation.
    for (const stream of [shell.stdout, shell.stderr]) stream.removeAllListeners('error').on('error', () => undefined);

    const defaults = { duration: { duration_hours: 1 }, name: nameOf(file) };
    const { client, body } = await tokenWanted({ ...invocation, options: { ...defaults, ...options } });
    await client.mayChange();
    // From here on no signal ends us: there may be a token to be revoked.
    const signals = new Signals(shell);
    const issued = await issue(client, body, signals);
    if (!issued) return signals.exitCode;
    output.trace(`issued ${issued.id} until ${issued.expires_at}`);
    try {
      if (signals.first) return signals.exitCode;
      const env: NodeJS.ProcessEnv = { ...shell.env, OPENAI_API_KEY: issued.token, OPENAI_BASE_URL: url };
      // The command is a client: it gets a token, and not what could issue more of them.
      delete env.MANAGEMENT_TOKEN;
      delete env.MANAGEMENT_TOKEN_FILE;
      return await ended(file, () => signals.passTo(shell.spawn(file, rest, env)));
    } finally {
      await revoke(issued, client, invocation);
    }
  },
});

/** @throws {Failure} where no client could be told of it. */
function baseUrlOf(server: string): string {
  const { url, socketPath } = serverOf(server);
  if (socketPath === undefined) return `${url}/v1`;
  throw usage('a unix socket has no base URL', { advice: 'Use --base-url with the TCP address of /v1' });
}

/** A name as the daemon takes it. */
function nameOf(file: string): string {
  const characters = Array.from(visible(basename(file)).trim());
  return characters.slice(0, MAX_NAME_LENGTH).join('') || 'run';
}

// A token whose answer comes later than this is nobody's: its secret is lost with the answer.
const ANSWER_WITHIN_MS = 2_000;

/** @returns undefined when a signal came, and no answer soon after. */
async function issue(
  client: ManagementClient,
  body: TokenCreate,
  signals: Signals,
): Promise<WireTokenCreated | undefined> {
  try {
    return await client.createToken(body, signals.abortedAfter(ANSWER_WITHIN_MS));
  } catch (error) {
    if (signals.first) return undefined;
    throw error;
  }
}

/** @throws {Failure} with 127 or 126, as shells have it, when it could not be started. */
async function ended(file: string, start: () => ReturnType<Signals['passTo']>): Promise<number> {
  try {
    return await new Promise<number>((resolve, reject) => {
      const child = start();
      child.once('exit', (code, signal) => {
        resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
      });
      child.on('error', (error) => {
        // With a process it is only a signal that could not be passed on, to one of another user.
        if (child.pid === undefined) reject(error);
      });
    });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') {
      const explanation = { why: 'there is no such command', code: 'command_not_found', cause: error };
      throw new Failure(EXIT.noSuchCommand, `cannot run ${file}`, explanation);
    }
    throw new Failure(EXIT.notExecutable, `cannot run ${file}`, {
      why: code === 'EACCES' ? 'it may not be executed' : (code ?? 'failed'),
      code: 'command_not_executable',
      cause: error,
    });
  }
}

// As long as a daemon takes to be started anew.
const TRY_AGAIN_AFTER_MS = [250, 500, 1000, 2000, 4000];
const ANSWER_TO_TRY_WITHIN_MS = 3_000;

/** Does not throw: what the command came to stands already. */
async function revoke(
  { id, expires_at: expiry }: WireTokenCreated,
  client: ManagementClient,
  { shell, output, server }: Pick<Invocation, 'shell' | 'output' | 'server'>,
): Promise<void> {
  const attempt = () => client.updateToken(id, { is_active: false }, AbortSignal.timeout(ANSWER_TO_TRY_WITHIN_MS));
  try {
    const token = await persistent(attempt, (ms) => shell.pause(ms, new AbortController().signal));
    output.note(`${used(token)} Revoked ${shortId(id)}.`);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return; // It is gone, and its project with it.
    const { exitCode, message, explanation } = failureOf(error, server);
    output.fail(
      new Failure(exitCode, `the token ${shortId(id)} is not revoked, and can be used until ${expiry}`, {
        ...explanation,
        why: [message, explanation.why].filter((reason) => reason).join(': '),
        advice: `Revoke it: llmp token revoke ${id}`,
      }),
    );
  }
}

async function persistent<T>(attempt: () => Promise<T>, pause: (ms: number) => Promise<unknown>): Promise<T> {
  for (const delayMs of TRY_AGAIN_AFTER_MS) {
    try {
      return await attempt();
    } catch (error) {
      if (!mayPass(error)) throw error;
      await pause(delayMs);
    }
  }
  return attempt();
}

function used({ request_count: uses, max_requests: cap, cache_hit_count: hits }: WireToken): string {
  const requests = cap === 0 ? `${uses} request${uses === 1 ? '' : 's'}` : `${uses} of ${cap} requests`;
  return `Used ${requests}${hits === 0 ? '' : `, and ${hits} answer${hits === 1 ? '' : 's'} from the cache`}.`;
}
