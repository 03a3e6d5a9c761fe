/** `llmp connect`: the lines that set up an agent permanently, with a token in a file. */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type Kind, oneOf } from '../../config/kinds.js';
import { ApiError } from '../../daemon/api/client.js';
import { type Dialect, DIALECTS } from '../../daemon/api/providers.js';
import { shellWord, visible } from '../../console/escape.js';
import { EXIT, Failure, usage } from '../../console/failure.js';
import type { View } from '../../console/table.js';
import { command, type Invocation } from '../command.js';
import { connectionTo } from '../connection/connection.js';
import { tokenSelf } from '../connection/probes.js';
import { text, value } from '../option.js';
import type { Output } from '../output.js';
import { ANY_PROGRAM, type PermanentSetUp, PROFILE_NAMES } from '../profiles.js';
import { isToken } from '../sdk-variables.js';
import { baseUrlOption, checkDialects, modelOption, originOf, profileFor, urlOf } from '../set-up.js';

const agent: Kind<string> = { accepts: 'the name of a command', values: PROFILE_NAMES, parse: (given) => given };

export const connectCommand = command({
  path: ['connect'],
  ignores: ['managementToken', 'managementTokenFile', 'reason'],
  summary: 'print the settings that point an agent at the daemon, with a token in a file',
  examples: [
    ['connect codex --token-file ~/.llmp-token', 'print the lines for ~/.codex/config.toml'],
    ['connect claude --token-file ~/.llmp-token', 'print the settings of Claude Code'],
    [
      'connect python --token-file ~/.llmp-token --for openai >> ~/.profile',
      'add the variables to the profile of the shell, without asking the daemon',
    ],
  ],
  argument: {
    name: 'CMD',
    meaning: `the command: ${PROFILE_NAMES.join(', ')}; for others, the variables of the SDK`,
    required: true,
    many: false,
    kind: agent,
  },
  options: {
    tokenFile: text('--token-file <FILE>', 'file with the token; its path is in the settings, and the token is not'),
    for: value(
      '--for <SDK>',
      oneOf(...DIALECTS),
      `the API of the token's project: ${DIALECTS.join(', ')} (default: the daemon is asked)`,
    ),
    model: modelOption,
    baseUrl: baseUrlOption,
  },
  async run(invocation) {
    const { args, options, output } = invocation;
    const [name = ''] = args;
    const profile = profileFor(name, options.model);
    if (options.tokenFile === undefined) throw usage('--token-file is required', { advice: NEEDS_FILE });
    if (options.tokenFile === '-') throw usage('--token-file must name a file', { advice: NEEDS_FILE });
    const tokenFile = resolve(options.tokenFile);
    const origin = options.baseUrl === undefined ? originOf(invocation.destination().server) : '';
    const dialect = options.for ?? (await dialectOfToken(tokenFile, invocation));
    checkDialects(name, profile, [dialect]);
    const url = urlOf(dialect, origin, options.baseUrl);
    const target = { dialect, url, model: options.model ?? '', token: TOKEN, tokenFile };
    const setUp = profile.connect?.(target) ?? { variables: profile.run({ ...target, folder: '' }).variables };
    if (profile === ANY_PROGRAM) output.note(`These are the variables of the SDK: ${visible(name)} is not known.`);
    if (output.format === 'table') printBlocks(setUp, tokenFile, output);
    else await output.one(dataOf(name, dialect, setUp, tokenFile), connectView);
    return EXIT.done;
  },
});

const NEEDS_FILE = 'Save a token: llmp token generate -q > FILE';

/** Stands for the token in a variable. It cannot be in one otherwise. */
const TOKEN = '\0';

/** @throws {Failure} if the file has no token, or the daemon refuses it. */
async function dialectOfToken(tokenFile: string, invocation: Invocation): Promise<Dialect> {
  const { input, output } = invocation;
  const token = (await input.secretFrom(tokenFile, 'the token')).trim();
  const shown = visible(tokenFile);
  if (!isToken(token))
    throw usage(`there is no token in ${shown}`, { why: 'a token begins with sk-wt-', advice: NEEDS_FILE });
  const { mode } = await stat(tokenFile);
  if ((mode & 0o077) !== 0) output.warn(`${shown} is readable by other users; run: chmod 600 ${shellWord(shown)}`);
  const connection = connectionTo(invocation);
  const { dialect } = await tokenSelf(connection, token).catch((error: unknown) => {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    throw new Failure(EXIT.refused, `the daemon at ${connection.server.shown} refused the token in ${shown}`, {
      code: error.code,
      requestId: error.requestId,
      cause: error,
      why: 'it is unknown, expired or revoked',
    });
  });
  return dialect;
}

/** A value of a variable as a word for a shell, which reads the token from the file. */
const wordOf = (text: string, tokenFile: string): string =>
  text
    .split(TOKEN)
    .map((part) => (part === '' ? '' : shellWord(part)))
    .join(`"$(cat ${shellWord(tokenFile)})"`);

const exportsOf = (variables: Readonly<Record<string, string>>, tokenFile: string): string[] =>
  Object.entries(variables).map(([name, text]) => `export ${name}=${wordOf(text, tokenFile)}`);

/** A single block can be appended to its file by the shell, so its place is not part of the output. */
function printBlocks({ variables = {}, files = {} }: PermanentSetUp, tokenFile: string, output: Output): void {
  const lines = exportsOf(variables, tokenFile);
  const blocks = Object.entries(files).map(([path, content]) => ({ path, text: content.trimEnd() }));
  if (lines.length > 0) blocks.push({ path: '~/.profile', text: lines.join('\n') });
  const [only] = blocks;
  if (only && blocks.length === 1) {
    output.note(`In ${only.path}:`);
    output.text(only.text);
  } else output.text(blocks.map(({ path, text: block }) => `# In ${path}:\n${block}`).join('\n\n'));
}

interface Connected {
  command: string;
  dialect: Dialect;
  files: Readonly<Record<string, string>>;
  shell: readonly string[];
}

const dataOf = (name: string, dialect: Dialect, setUp: PermanentSetUp, tokenFile: string): Connected => ({
  command: name,
  dialect,
  files: setUp.files ?? {},
  shell: exportsOf(setUp.variables ?? {}, tokenFile),
});

const connectView: View<Connected> = {
  idOf: ({ command: name }) => name,
  fields: ['command', 'dialect', 'files', 'shell'],
  columns: [{ title: 'COMMAND', rank: 0, show: ({ command: name }) => name }],
};
