/** Finds the management token: the first source that is set wins. */
import { spawn } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { credential } from '../../config/kinds.js';
import type { Destination } from './destination.js';
import { EXIT, Failure } from '../../console/failure.js';
import type { Globals } from '../globals.js';
import type { Input } from '../input.js';
import type { Output } from '../output.js';
import type { Shell } from '../shell.js';

const WHAT = 'the management token';
// Leaves enough time to type a passphrase.
const COMMAND_WITHIN_MS = 60_000;

export interface TokenSources {
  shell: Shell;
  globals: Globals;
  input: Input;
  output: Output;
  context: Destination['context'];
}

/** @throws {Failure} with exit code 3 without a usable token, 2 if a given source cannot be read. */
export async function managementTokenOf(sources: TokenSources): Promise<string> {
  const token = await firstToken(sources);
  if (credential.parse(token) !== undefined) return token;
  throw tokenFailure(`${WHAT} must be ${credential.accepts}`, 'management_token_malformed');
}

async function firstToken({ shell, globals, input, output, context }: TokenSources): Promise<string> {
  const { env } = shell;
  if (globals.managementToken !== undefined) {
    output.warn(
      'other users can see --management-token with `ps`; use --management-token-file or MANAGEMENT_TOKEN instead',
    );
    return globals.managementToken;
  }
  if (globals.managementTokenFile !== undefined) return input.secretFrom(globals.managementTokenFile, WHAT);

  const variable = env.MANAGEMENT_TOKEN ? 'MANAGEMENT_TOKEN' : env.MANAGEMENT_TOKEN_FILE ? 'MANAGEMENT_TOKEN_FILE' : '';
  const ofContext = context?.tokenCommand ?? context?.tokenFile;
  // The context's source takes precedence: the variable may be meant for another daemon, whose token must not be sent to this one.
  const isOfContext = context !== null && ofContext !== undefined;
  if (variable !== '' && isOfContext) {
    output.warn(`${variable} is ignored: context ${context.name} has its own management token`);
  }
  if (!isOfContext && env.MANAGEMENT_TOKEN) return env.MANAGEMENT_TOKEN;
  if (!isOfContext && env.MANAGEMENT_TOKEN_FILE) return input.secretFrom(env.MANAGEMENT_TOKEN_FILE, WHAT);
  if (context?.tokenCommand !== undefined) return outputOfCommand(context.tokenCommand, context.name, env);
  if (context?.tokenFile !== undefined) {
    await refuseShared(context.tokenFile);
    return input.secretFrom(context.tokenFile, WHAT);
  }
  if (input.canAsk) return input.hidden('Management token:');
  throw tokenFailure(`no management token`, 'management_token_missing', {
    advice:
      'Set MANAGEMENT_TOKEN or MANAGEMENT_TOKEN_FILE, use --management-token-file, or log in: llmp login --server URL',
  });
}

/** Runs a context's token_command and returns its output. It may prompt for a passphrase on the terminal; its stderr is shown. */
async function outputOfCommand(command: string, context: string, env: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn(command, {
    shell: true,
    env,
    stdio: ['inherit', 'pipe', 'inherit'],
    timeout: COMMAND_WITHIN_MS,
  });
  const ended = new Promise<string | null>((resolve) => {
    child.once('error', (error) => {
      resolve(error.message);
    });
    child.once('close', (code, signal) => {
      resolve(code === 0 ? null : `it ended with ${signal ?? `exit code ${code}`}`);
    });
  });
  const [output, why] = await Promise.all([text(child.stdout), ended]);
  if (why === null) return output.replace(/\r?\n$/, '');
  throw tokenFailure(`the token_command of context ${context} failed`, 'management_token_missing', { why });
}

async function refuseShared(path: string): Promise<void> {
  const found = await stat(path).catch(() => null); // Reading the file reports that it is missing.
  if (!found || (found.mode & 0o077) === 0) return;
  throw tokenFailure(`${path} is readable by other users`, 'management_token_shared', {
    advice: `Run: chmod 600 ${path}`,
  });
}

const tokenFailure = (message: string, code: string, more: { why?: string; advice?: string } = {}) =>
  new Failure(EXIT.managementToken, message, { code, ...more });
