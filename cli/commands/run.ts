/** `llmp run`: runs a command with a temporary token. */
import { constants } from 'node:os';
import { basename } from 'node:path';
import { withoutSecrets } from '../../config/settings.js';
import { command } from '../command.js';
import { flag, valuesOf } from '../option.js';
import { visible } from '../../console/escape.js';
import { EXIT, Failure, usage } from '../../console/failure.js';
import { GITHUB_VARIABLES, jwtOptions } from '../connection/exchange.js';
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
import { exchangedToken, issuedToken, termOptions } from './run-token.js';
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
    [
      'run --exchange --jwt-file /var/run/secrets/llmp/token -- ./worker',
      'exchange the JWT of a pod for the token, without a management token',
    ],
    ['run --exchange --audience llmp -- npm test', 'the same in GitHub Actions, which is asked for the JWT'],
  ],
  argument: {
    name: 'CMD',
    meaning: 'the command and its arguments',
    required: true,
    many: true,
    isCommandLine: true,
  },
  options: {
    ...termOptions,
    for: valuesOf(
      '--for <SDKS>',
      SDK_NAMES,
      `SDKs whose key and base URL are set: ${SDK_NAMES.join(', ')} (default: that of the project's provider)`,
    ),
    as: asOption,
    model: modelOption,
    baseUrl: baseUrlOption,
    exchange: flag('--exchange', 'exchange the JWT of a job or pod for the token, with the terms of a trust'),
    ...jwtOptions,
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
    if (!options.exchange && (options.jwtFile ?? options.audience) !== undefined) {
      throw usage(`${options.jwtFile === undefined ? '--audience' : '--jwt-file'} needs --exchange`);
    }
    const origin = options.baseUrl === undefined ? originOf(invocation.destination().server) : '';
    // The reader of the output may close it early. The token must be revoked nevertheless.
    for (const stream of [shell.stdout, shell.stderr]) stream.removeAllListeners('error').on('error', () => undefined);

    // The command is a client: it must not be able to issue more tokens, or read the daemon's data.
    const inherited = withoutSecrets(shell.env);
    if (options.exchange) for (const variable of GITHUB_VARIABLES) Reflect.deleteProperty(inherited, variable);
    const setUpFor = (sdks: readonly SdkName[]) => {
      checkDialects(name, profile, sdks);
      const targets = sdks.map((dialect) => ({
        dialect,
        url: urlOf(dialect, origin, options.baseUrl),
        model: options.model ?? '',
      }));
      return (token: string, folder: Pick<SetUpFolder, 'path'>) => {
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
    };
    const source = options.exchange
      ? exchangedToken(invocation, options)
      : await issuedToken(invocation, options, await nameOf(file));
    const known = given ?? listOf(await source.dialectBefore());
    if (options.dryRun) {
      if (known === null) {
        throw usage('--dry-run with --exchange needs --for', {
          why: 'the API of the project is known once the JWT is exchanged',
          advice: `Add --for ${SDK_NAMES.join('|')}`,
        });
      }
      await show(setUpFor(known)('sk-wt-…', { path: 'FOLDER' }), args, inherited, output);
      return EXIT.done;
    }
    if (known !== null) setUpFor(known);
    await source.confirm();
    // From here on no signal ends this process, because there may be a token to revoke.
    const signals = new SignalRelay(shell);
    const token = await source.begin(signals.abortedAfter(ISSUE_TIMEOUT_MS)).catch((error: unknown) => {
      if (signals.first) return null;
      throw error;
    });
    if (token === null) return signals.exitCode;
    try {
      if (signals.first) return signals.exitCode;
      const sdks = known ?? [await source.dialect()];
      const folder = new SetUpFolder();
      try {
        const { variables, args: front, files } = setUpFor(sdks)(token, folder);
        folder.write(files);
        if (profile === ANY_PROGRAM) output.note(`Set ${Object.keys(variables).join(', ')} for ${visible(name)}.`);
        const env = environmentFor(sdks, variables, inherited);
        return await runChild(file, () => signals.forwardTo(shell.spawn(file, [...front, ...rest], env)));
      } finally {
        folder.remove(output);
      }
    } finally {
      await source.end();
    }
  },
});

const listOf = (dialect: SdkName | null): SdkName[] | null => dialect && [dialect];

/** @returns null if none are given. */
function sdksIn(given: string | undefined): SdkName[] | null {
  if (given === undefined) return null;
  const named = given.replace(/^!/, '').split(',');
  return SDK_NAMES.filter((name) => named.includes(name) !== given.startsWith('!'));
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
