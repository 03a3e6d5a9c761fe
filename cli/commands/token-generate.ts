/** `llmp token generate`: issues a token. Its secret is shown only here. */
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { integer, type Kind } from '../../config/kinds.js';
import type { WireToken, WireTokenCreated } from '../../daemon/api/contract.js';
import { command, type Invocation } from '../command.js';
import { OF_OUTPUT, optionsGiven } from '../globals.js';
import { flag, text, value } from '../option.js';
import { TOKEN_FIELDS } from '../../console/columns/tokens.js';
import { shellWord, visible } from '../../console/escape.js';
import { EXIT, Failure, usage } from '../../console/failure.js';
import { issuingOptions, likeOption, tokenWanted } from './issuing.js';
import { lostSecret, type Output } from '../output.js';
import { policyOptions } from '../policy-options.js';
import { tokenCreatedView, tokenView } from '../../console/views.js';

const variableName: Kind<string> = {
  accepts: 'a variable name: letters, digits and _, not starting with a digit',
  parse: (given) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(given) ? given : undefined),
};

const options = {
  ...issuingOptions(24, 'name of the token, for example its purpose'),
  like: likeOption,
  ...policyOptions,
  from: text(
    '--from <FILE>',
    'issue a token for each row of a CSV file, or of standard input for -; its columns are named as options are: name, project, duration, max-requests, like, allow-route, allow-model, rpm, tpm, concurrent, budget-usd, budget-tokens, budget-period, budget-mode',
  ),
  startLine: value('--start-line <LINE>', integer(1, 100_000_000), 'with --from, begin with the row of this line'),
  query: text(
    '--query <QUERY>',
    "issue the tokens again that a query selects, for example 'state:expired project:web'; see llmp help query",
    'query of tokens',
  ),
  dryRun: flag('-n, --dry-run', 'with --from or --query, show what would be issued, without issuing anything'),
  out: text(
    '--out <FILE>',
    'write the secret to a new file with mode 0600 instead of printing it; several tokens as CSV, or by the end of the name as .json or .jsonl',
  ),
  env: value('--env <VAR>', variableName, "print the secret as export VAR='…', for evaluation by a shell"),
};

export const generate = command({
  path: ['manage', 'token', 'generate'],
  summary: 'issue a token, or many, and show each secret once',
  examples: [
    ['token generate --duration 48', 'issue a token for 48 hours'],
    ['token generate --max-requests 500 --out token.txt', 'allow 500 requests, and write the secret to a file'],
    ['token generate --like ci-nightly', 'issue a token again that has expired, with the same terms'],
    ['token generate --from class.csv --duration 8h --out secrets.csv', 'issue a token for each row of a file'],
    ["token generate --query 'state:expired project:web' --out again.csv", 'issue expired tokens again'],
    ["token generate --allow-route inference --allow-model 'gpt-5-mini,claude-*'", 'allow only some routes and models'],
    ['token generate --rpm 60 --tpm 200000 --concurrent 4', 'limit how fast it may be used'],
    ['token generate --budget-usd 20 --budget-period month', 'let the token spend 20 US dollars each month'],
    ['token generate -q', 'print only the secret'],
    ['token generate --env OPENAI_API_KEY', "print export OPENAI_API_KEY='sk-wt-…'"],
  ],
  options,
  prints: ({ options: { out } }) => (out === undefined ? [...TOKEN_FIELDS, 'token'] : TOKEN_FIELDS),
  async run(invocation) {
    const { options: given, globals, output } = invocation;
    if (given.out !== undefined && given.env !== undefined) {
      throw usage('--out and --env exclude each other', { advice: 'Use one of them' });
    }
    if (given.from !== undefined || given.query !== undefined) return many(invocation);
    for (const [name, option] of [['--start-line', given.startLine] as const, ['--dry-run', given.dryRun] as const]) {
      if (option !== undefined) throw usage(`${name} needs --from${name === '--dry-run' ? ' or --query' : ''}`);
    }
    const [format] = optionsGiven(OF_OUTPUT, globals);
    if (given.env !== undefined && format !== undefined) {
      throw usage(`--env and ${format} exclude each other`, { advice: 'Use one of them' });
    }
    if (output.format === 'id' && given.out === undefined && given.env === undefined && !output.isQuiet) {
      throw usage('-o id would lose the secret, which is shown only now', { advice: 'Add --out FILE' });
    }
    const { client, body } = await tokenWanted(invocation);
    if (given.out === undefined) await show(await client.createToken(body), given.env, output);
    else await intoFile(given.out, () => client.createToken(body), output);
    return EXIT.done;
  },
});

/** Issues several tokens. */
async function many(invocation: Invocation<typeof options>): Promise<number> {
  const { from, query, like, env, startLine } = invocation.options;
  const excluded = [
    [from, query, '--from and --query'],
    [query, like, '--query and --like'],
    [query, startLine, '--query and --start-line'],
    [from ?? query, env, `${from === undefined ? '--query' : '--from'} and --env`],
  ] as const;
  for (const [one, other, names] of excluded) {
    if (one !== undefined && other !== undefined)
      throw usage(`${names} exclude each other`, { advice: 'Use one of them' });
  }
  const { issueMany } = await import('./token-issue.js');
  return issueMany(invocation);
}

async function show(issued: WireTokenCreated, variable: string | undefined, output: Output): Promise<void> {
  const secret = visible(issued.token);
  output.secretOf(() => issued.id);
  if (variable !== undefined) output.text(`export ${variable}=${shellWord(secret)}`);
  else if (output.isQuiet && output.format !== 'jq' && output.format !== 'template') output.text(secret);
  else await shown(issued, output);
  output.note(`The secret is not shown again. Undo: llmp token revoke ${issued.id}`);
}

async function shown(issued: WireTokenCreated, output: Output): Promise<void> {
  try {
    await output.one(issued, tokenCreatedView);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // The token exists, but its secret was not shown.
    const advice = `Revoke the token, whose secret is lost: llmp token revoke ${issued.id}`;
    throw new Failure(error.exitCode, error.message, { ...error.explanation, advice });
  }
}

/** Creates the file first: if the secret cannot be saved, the token must not be issued. */
async function intoFile(path: string, issue: () => Promise<WireTokenCreated>, output: Output): Promise<void> {
  const file = await newFile(path);
  const issued = await issue().catch(async (error: unknown) => {
    await file.close();
    await unlink(path);
    throw error;
  });
  try {
    await file.writeFile(`${issued.token}\n`);
    await file.close();
  } catch (error) {
    throw lostSecret(issued.id, error, ` to ${path}`);
  }
  const shown: WireToken & { token?: string } = { ...issued };
  delete shown.token;
  if (!output.isQuiet) await output.one(shown, tokenView);
  output.note(`The secret is in ${path}, readable by you only. Undo: llmp token revoke ${issued.id}`);
}

const OWNER_ONLY = 0o600;

async function newFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', OWNER_ONLY);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw usage(`${path} already exists and is not overwritten`, { advice: 'Name a new file' });
    throw usage(`cannot create ${path}`, { why: code ?? 'failed', cause: error });
  }
}
