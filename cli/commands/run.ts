/** `llmp run`: runs a command with a temporary token. */
import { counted, exact } from '../../daemon/api/formats.js';
import { constants } from 'node:os';
import { basename } from 'node:path';
import { withoutSecrets } from '../../config/settings.js';
import { ApiError, type ManagementClient } from '../../daemon/api/client.js';
import type { TokenCreate, WireToken, WireTokenCreated } from '../../daemon/api/contract.js';
import { type Dialect, dialectOf } from '../../daemon/api/providers.js';
import { isRetryable } from '../../daemon/api/follow-stream.js';
import { command, type Invocation } from '../command.js';
import { flag, valuesOf } from '../option.js';
import { visible } from '../../console/escape.js';
import { EXIT, Failure, failureOf, usage } from '../../console/failure.js';
import { issuingOptions, tokenWanted } from './issuing.js';
import { ANY_PROGRAM, type Target } from '../profiles.js';
import { environmentFor, SDK_NAMES, type SdkName } from '../sdk-variables.js';
import {
  asOption,
  baseUrlOption,
  checkDialects,
  merged,
  modelOption,
  originOf,
  profileFor,
  SetUpFolder,
  show,
  urlOf,
  directAccess,
} from '../set-up.js';
import { SignalRelay } from '../signals.js';
import { shortId } from '../../console/columns/cell-text.js';
import { MAX_NAME_LENGTH } from '../../daemon/api/vocabulary.js';

export const runCommand = command({
  path: ['run'],
  summary: 'run a command with a temporary token that is revoked when the command ends',
  examples: [
    ['run -- python3 batch.py', "set the key and the base URL of the provider's SDK for the command"],
    ['run --project-id claude -- claude', 'run Claude Code with a token of the project claude'],
    ['run -n -- codex', 'show what would be set for Codex, without issuing a token'],
    ['run --for openai,anthropic -- ./agent', 'set OPENAI_API_KEY, ANTHROPIC_API_KEY and the base URLs of both SDKs'],
    ['run --project-id web --duration 30m --max-requests 500 -- npm test', 'allow up to 30 minutes and 500 requests'],
  ],
  argument: {
    name: 'CMD',
    meaning: 'the command and its arguments',
    required: true,
    many: true,
    isCommandLine: true,
  },
  options: {
    ...issuingOptions(1, "name of the token (default: the command's name)"),
    for: valuesOf(
      '--for <SDKS>',
      SDK_NAMES,
      `SDKs whose key and base URL are set: ${SDK_NAMES.join(', ')} (default: that of the project's provider)`,
    ),
    as: asOption,
    model: modelOption,
    baseUrl: baseUrlOption,
    dryRun: flag('-n, --dry-run', 'show what would be set for the command, without issuing a token or running it'),
  },
  /** @returns the exit code of the command, or 128 plus the number of the signal that ended it. */
  async run(invocation) {
    const { args, options, shell, output } = invocation;
    const [file = '', ...rest] = args;
    const name = options.as ?? basename(file);
    const profile = profileFor(name, options.model);
    const given = sdksIn(options.for);
    if (options.baseUrl !== undefined && given !== null && given.length > 1) {
      throw usage('--base-url is for one SDK', { advice: 'Name one SDK with --for' });
    }
    const origin = options.baseUrl === undefined ? originOf(invocation.destination().server) : '';
    // The reader of the output may close it early. The token must be revoked nevertheless.
    for (const stream of [shell.stdout, shell.stderr]) stream.removeAllListeners('error').on('error', () => undefined);

    const defaults = { duration: { duration_hours: 1 }, name: await nameOf(file) };
    const { client, body } = await tokenWanted({ ...invocation, options: { ...defaults, ...options } });
    const sdks = given ?? [await dialectOfProject(client, body)];
    checkDialects(name, profile, sdks);
    const targets = sdks.map((dialect) => ({
      dialect,
      url: urlOf(dialect, origin, options.baseUrl),
      model: options.model ?? '',
    }));
    // The command is a client: it must not be able to issue more tokens, or read the daemon's data.
    const inherited = withoutSecrets(shell.env);
    const setUp = (token: string, folder: Pick<SetUpFolder, 'path'>) => {
      const pointed = (target: (typeof targets)[number]): Target => ({
        ...target,
        token,
        get folder() {
          return folder.path;
        },
      });
      const direct = {
        variables: directAccess(
          targets.map(({ url }) => url),
          inherited,
        ),
      };
      return merged([...targets.map((target) => profile.run(pointed(target))), direct]);
    };
    if (options.dryRun) {
      await show(setUp('sk-wt-…', { path: 'FOLDER' }), args, inherited, output);
      return EXIT.done;
    }
    await client.confirmChange();
    // From here on no signal ends this process, because there may be a token to revoke.
    const signals = new SignalRelay(shell);
    const issued = await issue(client, body, signals);
    if (!issued) return signals.exitCode;
    output.trace(`issued ${issued.id} until ${issued.expires_at}`);
    try {
      if (signals.first) return signals.exitCode;
      const folder = new SetUpFolder();
      try {
        const { variables, args: front, files } = setUp(issued.token, folder);
        folder.write(files);
        if (profile === ANY_PROGRAM) output.note(`Set ${Object.keys(variables).join(', ')} for ${visible(name)}.`);
        const env = environmentFor(sdks, variables, inherited);
        return await runChild(file, () => signals.forwardTo(shell.spawn(file, [...front, ...rest], env)));
      } finally {
        folder.remove(output);
      }
    } finally {
      await revoke(issued, client, invocation);
    }
  },
});

/** @returns null if none are given. */
function sdksIn(given: string | undefined): SdkName[] | null {
  if (given === undefined) return null;
  const named = given.replace(/^!/, '').split(',');
  return SDK_NAMES.filter((name) => named.includes(name) !== given.startsWith('!'));
}

/** The API of the new token's project. */
async function dialectOfProject(client: ManagementClient, body: TokenCreate): Promise<Dialect> {
  const id = body.project_id ?? (body.like === undefined ? undefined : (await client.token(body.like)).project_id);
  return id === undefined ? 'openai' : dialectOf(await client.project(id));
}

/** The default name of the token: the program's name, in the form that the daemon accepts. */
async function nameOf(file: string): Promise<string> {
  const shown = visible(basename(file));
  if (/^\w{1,40}$/.test(shown)) return shown;
  const { isName, typableName } = await import('../../daemon/api/names.js');
  const name = Array.from(typableName(shown)).slice(0, MAX_NAME_LENGTH).join('').trim();
  return isName(name) ? name : 'run';
}

// How long a signal leaves for the response with the new token. After that, the token's secret is lost, so the token cannot be used.
const ISSUE_TIMEOUT_MS = 2_000;

/** @returns undefined if a signal arrived and no response followed in time. */
async function issue(
  client: ManagementClient,
  body: TokenCreate,
  signals: SignalRelay,
): Promise<WireTokenCreated | undefined> {
  try {
    return await client.createToken(body, signals.abortedAfter(ISSUE_TIMEOUT_MS));
  } catch (error) {
    if (signals.first) return undefined;
    throw error;
  }
}

/** @returns the exit code. @throws {Failure} with 127 or 126, as in shells, if the command could not be started. */
async function runChild(file: string, start: () => ReturnType<SignalRelay['forwardTo']>): Promise<number> {
  try {
    return await new Promise<number>((resolve, reject) => {
      const child = start();
      child.once('exit', (code, signal) => {
        resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
      });
      child.on('error', (error) => {
        // If the child runs, the error is about a signal that could not be sent to it, because it belongs to another user.
        if (child.pid === undefined) reject(error);
      });
    });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') {
      const explanation = { why: 'command not found', code: 'command_not_found', cause: error };
      throw new Failure(EXIT.noSuchCommand, `cannot run ${file}`, explanation);
    }
    throw new Failure(EXIT.notExecutable, `cannot run ${file}`, {
      why: code === 'EACCES' ? 'permission denied' : (code ?? 'failed'),
      code: 'command_not_executable',
      cause: error,
    });
  }
}

// Together about as long as a restart of the daemon takes.
const RETRY_DELAYS_MS = [250, 500, 1000, 2000, 4000];
const ATTEMPT_TIMEOUT_MS = 3_000;

/** Revokes the token. It reports failures and does not throw, so that the exit code stays that of the command. */
async function revoke(
  { id, expires_at: expiry }: WireTokenCreated,
  client: ManagementClient,
  { shell, output, server }: Pick<Invocation, 'shell' | 'output' | 'server'>,
): Promise<void> {
  const attempt = () => client.updateToken(id, { is_active: false }, AbortSignal.timeout(ATTEMPT_TIMEOUT_MS));
  try {
    const token = await withRetries(attempt, (ms) => shell.pause(ms, new AbortController().signal));
    output.note(`${usageSummary(token)} Revoked ${shortId(id)}.`);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return; // The token was deleted together with its project.
    const { exitCode, message, explanation } = failureOf(error, server);
    output.fail(
      new Failure(exitCode, `could not revoke token ${shortId(id)}; it can be used until ${expiry}`, {
        ...explanation,
        why: [message, explanation.why].filter((reason) => reason).join(': '),
        advice: `Revoke it: llmp token revoke ${id}`,
      }),
    );
  }
}

async function withRetries<T>(attempt: () => Promise<T>, pause: (ms: number) => Promise<unknown>): Promise<T> {
  for (const delayMs of RETRY_DELAYS_MS) {
    try {
      return await attempt();
    } catch (error) {
      if (!isRetryable(error)) throw error;
      await pause(delayMs);
    }
  }
  return attempt();
}

function usageSummary({ request_count: uses, max_requests: cap, cache_hit_count: hits }: WireToken): string {
  const requests = cap === 0 ? counted(uses, 'request') : `${exact(uses)} of ${counted(cap, 'request')}`;
  return `Used ${requests}${hits === 0 ? '' : `, plus ${counted(hits, 'cache hit')}`}.`;
}
