/** Topics that concern all commands: `llmp help TOPIC`, and sections of llmp(1). */
import { EXIT, EXIT_MEANINGS } from '../../console/failure.js';
import { type Block, terms } from './prose.js';

export interface Topic {
  summary: string;
  blocks: readonly Block[];
}

const exitCodes = (Object.keys(EXIT) as (keyof typeof EXIT)[]).map(
  (name) => [String(EXIT[name]), EXIT_MEANINGS[name]] as const,
);

export const TOPICS: Readonly<Record<string, Topic>> = {
  environment: {
    summary: 'environment variables',
    blocks: [
      'An option takes precedence over its environment variable. For the settings of the daemon see llmp.env(5), or run `llmp config show --origin`.',
      terms({
        LLMP_SERVER: 'Address of the daemon, as for `--server` (default: http://127.0.0.1:8080).',
        LLMP_CONTEXT: 'The context to use, as for `-c`.',
        LLMP_CONFIG: 'The contexts file (default: llmp/config.toml in `XDG_CONFIG_HOME` or in ~/.config).',
        MANAGEMENT_TOKEN: 'The management token, or the secret of an operator (`sk-op-…`) or a session (`sk-ss-…`).',
        MANAGEMENT_TOKEN_FILE: 'A file that contains it, as for `--management-token-file`.',
        LLMP_PROJECT_ID: 'Default project for new tokens, by name or ID, as for `--project-id`.',
        LLMP_OUTPUT: 'Output format, as for `-o`.',
        LLMP_ASCII: '1: use ASCII only; 0: use symbols in every locale.',
        NO_COLOR: 'Any value: do not use colors, as with `--no-color`.',
        TERM: 'dumb: no colors and no redrawing in place.',
        'LC_ALL, LC_CTYPE, LANG': 'The locale. If it is not UTF-8, llmp uses ASCII only.',
        'LLMP_PAGER, PAGER':
          'The pager for tables that are longer than the terminal, and for `llmp man` if man(1) is not installed (default: less -FRX); empty or `cat`: none.',
      }),
    ],
  },
  formatting: {
    summary: 'output formats',
    blocks: [
      'Data goes to standard output, messages and errors go to standard error. Control characters, for example in the name of a token, are shown as escape sequences such as `\\x1b`.',
      terms({
        '-o table': 'A table with titles and relative times; on a terminal, as many columns as fit.',
        'no option':
          'On a terminal: a table. When piped: all fields, separated by tabs, with RFC 3339 times and without titles. `llmp status` has one line for each field.',
        '-o json, --json': 'One JSON value. Errors are JSON objects on standard error.',
        '-o jsonl': 'One JSON value per line.',
        '-o yaml': 'The value of `-o json` as YAML. A stream has one document for each item.',
        '--jq PROGRAM':
          'The results of a jq program on the value of `-o json`, one per line, texts without quotes. It is jq 1.8, without access to files and to the environment, and with up to 1 GB of memory. ^C ends it.',
        '--template TEXT':
          'A line for each item. `{{.name}}` stands for a field, `{{.database.status}}` for a field of a field, `\\t` for a tab, and `\\n` for a new line. A field that is null is empty; one that no item can have is an error.',
        '-o csv': 'CSV with titles. Cells that a spreadsheet would evaluate as a formula begin with an apostrophe.',
        '-o id': 'Only IDs, one per line, as input for another command.',
        '-q': 'Suppresses messages on standard error, except errors. `token generate` prints only the secret.',
      }),
      'A state is shown as a symbol and a word: ● active, ○ expired, ✗ revoked, ▲ limited, ◌ project off. In ASCII the symbols are `*`, `-`, `x`, `!` and `=`.',
      {
        lines: [
          "llmp token list -o json | jq -r '.[] | select(.request_count == 0) | .id'",
          'llmp token list -o id --state expired | llmp token revoke - --yes',
          'llmp audit list --since 30d -o csv > audit.csv',
        ],
      },
    ],
  },
  query: {
    summary: 'queries, which select tokens, projects and audit records',
    blocks: [
      'The list commands take a query, with the same grammar as the filter line of the terminal UI. It has words and terms, separated by spaces. Quote it for the shell.',
      terms({
        ci: 'A word: the name contains it, or the ID starts with it. Upper and lower case are the same.',
        '"two words"': 'Text with spaces.',
        '!old': 'A leading `!` excludes what matches.',
        'state:active,expired': 'A term: a key and its values. One of the values must match.',
        '!state:revoked': 'Any other value.',
        'project:"my app"': 'A project by name or ID. A value with spaces or commas needs quotes.',
        'expires:<2h': 'Expires within two hours. Units are `s`, `m`, `h` and `d`.',
        'expires:>2030-01-31': 'Expires after a day or time in UTC.',
        'idle:>30d': 'Nobody has used it for 30 days; a token that was never used counts from its creation.',
        'created:<7d': 'Was created less than 7 days ago. With a day or time, `<` means before it.',
        'errors:>10': 'Had more failures than this since yesterday (UTC).',
        'model:gpt-4o': 'Was used since yesterday (UTC) for a model with this text in its name.',
        'allows:gpt-5*':
          'May use a model with such a name, by its own list and that of its project. `*` stands for any characters.',
        'limited:yes': 'Has limits of requests or model tokens, or its project has. `limited:no`: all others.',
        'by:operator:ana':
          'Was issued by an operator, or by a person (`by:person:ISSUER#ID`), a trust (`by:trust:ID`) or the holder of the management token (`by:management-token`). `by:ana` is the operator.',
        'used:>90%': 'Has used more than this share of its cap.',
        'budget:hard':
          'It or its project has a budget of this mode: `hard`, `soft` or `shadow`. `budget:yes`: of any mode. `budget:no`: none.',
        'spent:>10':
          'Has spent more US dollars than this in the current period of its budget, or, without a budget or period, since its creation.',
        'left:<20%': 'Less than this share of its own budget is left, in US dollars or in model tokens.',
      }),
      'All words and terms must match. `llmp help token list` and the help of the other list commands name their keys. In the terminal UI, `Y` copies the command that lists what is on the screen.',
      {
        lines: [
          "llmp token list 'project:web state:active expires:<2h'",
          "llmp token list -o id '!state:active ci' | llmp token revoke - --yes",
          "llmp audit list 'action:token.revoke since:7d leaked'",
        ],
      },
    ],
  },
  'exit-codes': {
    summary: 'exit codes',
    blocks: [
      { entries: exitCodes },
      'For several IDs: if all of them failed in the same way, the exit code is that of the failure; otherwise it is 1. `llmp run` exits with the exit code of its command, or with 128 plus the number of the signal that ended the command.',
    ],
  },
  tokens: {
    summary: 'tokens, their states and secrets',
    blocks: [
      "A token allows a client to send requests with a project's upstream key until the token expires. Its secret (`sk-wt-` and 49 characters) is shown once; llmp stores only a digest. The ID of a token is not a secret. It identifies the token in lists, logs and commands; a unique prefix of six or more characters is enough.",
      terms({
        active: 'Requests are accepted.',
        expired: 'The lifetime of the token has ended. Requests get 401.',
        revoked: 'The token was revoked; `llmp token reactivate` undoes that. Requests get 401.',
        limited: 'The token has reached its request cap (`--max-requests`). Requests get 429.',
        'project off': 'The project is inactive. Requests get 403.',
      }),
      {
        lines: [
          'llmp token generate --duration 48 --max-requests 500 --name notebook',
          'TOKEN=$(llmp token generate --duration 90m -q)       # for a script',
          'llmp token revoke 3fa91c2e --reason "leaked"         # from now on requests are refused',
          'llmp token reactivate 3fa91c2e                       # undo; keeps the request count',
          'llmp token whois < leaked.txt                        # find the token of a secret',
        ],
      },
      'More: llmp(7).',
    ],
  },
  security: {
    summary: 'how to handle secrets',
    blocks: [
      'The management token gives full access to a daemon; the secret of an operator and a session give what their role allows (`llmp whoami`). llmp uses the first of these that is set:',
      terms({
        '--management-token': 'Avoid this option: other users can see it with `ps`.',
        '--management-token-file': 'A file; - is standard input.',
        context:
          'The token command or token file of the current context, or its session (`llmp login`). It comes before the environment, so that a token in the environment is not sent to another daemon.',
        'MANAGEMENT_TOKEN, MANAGEMENT_TOKEN_FILE': 'The environment variables.',
        prompt: 'On a terminal. The input is not shown.',
      }),
      'Other secrets and protections:',
      terms({
        'upstream keys': 'llmp reads them from a file, standard input or a prompt, never from an option.',
        'token secrets':
          'A secret is shown once. `--out FILE` writes it to a new file with mode 0600 and never overwrites a file.',
        sessions:
          '`llmp login` stores the secret of a session in a file with mode 0600. It ends after 8 hours, or with `llmp logout`.',
        'jobs and pods':
          'They need no stored secret: `llmp run --exchange` and `llmp token exchange` exchange the JWT of their platform for a token.',
        'a leaked secret':
          'Pass it to `llmp token whois` on standard input. llmp refuses secrets as arguments and does not send them, because the shell stores arguments in its history.',
        '--server':
          'With http to another machine the management token is sent in clear text, and llmp prints a warning. Use https or unix:PATH.',
        names:
          'Names from the daemon cannot control the terminal, a spreadsheet or the shell: llmp escapes them, and completion omits names with special characters.',
        changes:
          'Every change is audited, with the text of `--reason`. In a script, changes to several tokens need `--yes`; `-n` shows what would change.',
      }),
      'More: llmp(7).',
    ],
  },
};
