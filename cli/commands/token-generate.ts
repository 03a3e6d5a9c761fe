/** `llmp token generate`: issues a token. Its secret is shown only here. */
import { integer, type Kind } from '../../config/kinds.js';
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import { command, type Invocation } from '../command.js';
import { OF_OUTPUT, optionsGiven } from '../globals.js';
import { flag, text, value } from '../option.js';
import { TOKEN_FIELDS } from '../../console/columns/tokens.js';
import { shellWord, visible } from '../../console/escape.js';
import { EXIT, usage } from '../../console/failure.js';
import { issuingOptions, likeOption, tokenWanted } from './issuing.js';
import { OF_TOKEN } from '../output.js';
import { type MadeSecret, onceNote, refuseToLoseSecret, secretIntoFile, showSecret } from '../secret-once.js';
import { tokenCreatedView, tokenView } from '../../console/views.js';

const variableName: Kind<string> = {
  accepts: 'a variable name: letters, digits and _, not starting with a digit',
  parse: (given) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(given) ? given : undefined),
};

const SECRET: MadeSecret<WireTokenCreated, 'token'> = {
  owner: OF_TOKEN,
  field: 'token',
  view: tokenCreatedView,
  viewWithout: tokenView,
};

const options = {
  ...issuingOptions(24, 'name of the token, for example its purpose'),
  like: likeOption,
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
    if (given.out === undefined && given.env === undefined) refuseToLoseSecret(output);
    const { client, body } = await tokenWanted(invocation);
    const issue = () => client.createToken(body);
    if (given.out !== undefined) await secretIntoFile(given.out, issue, SECRET, output);
    else if (given.env === undefined) await showSecret(await issue(), SECRET, output);
    else {
      const issued = await issue();
      output.secretOf(() => issued.id);
      output.text(`export ${given.env}=${shellWord(visible(issued.token))}`);
      output.note(onceNote(issued, SECRET));
    }
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
