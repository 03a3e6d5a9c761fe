/** What concerns every command: `llmp help TOPIC`, and sections of llmp(1). */
import { EXIT, EXIT_MEANINGS } from '../../console/failure.js';
import type { Block } from './prose.js';

export interface Topic {
  summary: string;
  blocks: readonly Block[];
}

const exitCodes = (Object.keys(EXIT) as (keyof typeof EXIT)[]).map(
  (name) => [String(EXIT[name]), EXIT_MEANINGS[name]] as const,
);

export const TOPICS: Readonly<Record<string, Topic>> = {
  environment: {
    summary: 'variables that stand for options',
    blocks: [
      'An option on the line comes before its variable. The settings of the daemon are others: llmp.env(5), or `llmp config show --origin`.',
      {
        entries: [
          ['LLMP_SERVER', 'Where the daemon is, as for `--server`; http://127.0.0.1:8080 unless given.'],
          ['LLMP_CONTEXT', 'The context to use, as for `-c`.'],
          ['LLMP_CONFIG', 'The file of contexts; else llmp/config.toml in `XDG_CONFIG_HOME`, or in ~/.config.'],
          ['MANAGEMENT_TOKEN', 'The management token.'],
          ['MANAGEMENT_TOKEN_FILE', 'A file that holds it, as for `--management-token-file`.'],
          [
            'LLMP_PROJECT_ID',
            'The project that tokens are issued for, by name or id, where `--project-id` is not given.',
          ],
          ['LLMP_OUTPUT', 'The format, as for `-o`.'],
          ['LLMP_ASCII', '1: no glyphs beyond ASCII; 0: glyphs whatever the locale says.'],
          ['NO_COLOR', 'Anything: no colour, as with `--no-color`.'],
          ['TERM', 'dumb: no colour, and nothing is drawn in place.'],
          ['LC_ALL, LC_CTYPE, LANG', 'Name a locale: one that is not UTF-8 gets no glyphs.'],
          ['PAGER', 'What `llmp man` shows pages with where there is no man; less unless given.'],
        ],
      },
    ],
  },
  formatting: {
    summary: 'output for people and for programs',
    blocks: [
      'Data goes to standard output, everything else to standard error. What cannot be shown, such as an escape in the name of a token, is spelt out: `\\x1b`.',
      {
        entries: [
          [
            '-o table',
            'Unless asked for something else. On a terminal columns with titles, of which the less important give way to its width, and times as a distance from now; elsewhere the fields separated by tabs, without titles, times as RFC 3339.',
          ],
          ['-o json, --json', 'One JSON value; an error is an object on standard error.'],
          ['-o jsonl', 'A JSON value a line, as it comes.'],
          ['-o csv', 'With titles. A cell that a spreadsheet would run as a formula gets a leading apostrophe.'],
          ['-o id', 'Ids alone, a line each, for another command to read.'],
          ['-q', 'Nothing on standard error but errors; of `token generate` the secret and nothing else.'],
        ],
      },
      'A state is a glyph and a word: ● active, ○ expired, ✗ revoked, ▲ limited, ◌ project off. In ASCII the glyphs are `*`, `-`, `x`, `!` and `=`.',
      {
        lines: [
          "llmp token list -o json | jq -r '.[] | select(.request_count == 0) | .id'",
          'llmp token list -o id --state expired | llmp token revoke - --yes',
          'llmp audit list --since 30d -o csv > audit.csv',
        ],
      },
    ],
  },
  'exit-codes': {
    summary: 'what a script can tell from the exit code',
    blocks: [
      { entries: exitCodes },
      'Of several ids that all failed alike the code says how; if some did and some did not, it is 1. `llmp run` ends with the exit code of its command, or with 128 and the number of the signal that ended it.',
    ],
  },
  tokens: {
    summary: 'what tokens are, their states, and their secrets',
    blocks: [
      "A token is a right to send requests for a project, with the project's upstream key, until it expires. Its secret, `sk-wt-` and 49 characters, is shown once; what is kept is a digest. An id is not a secret: it names the token in lists, logs and commands, and its first six characters are enough as long as no other begins like it.",
      {
        entries: [
          ['active', 'It passes.'],
          ['expired', 'Its time is over: 401.'],
          ['revoked', 'Somebody took it back, until `llmp token reactivate`: 401.'],
          ['limited', 'Its cap, `--max-requests`, is used up: 429.'],
          ['project off', 'Its project is deactivated: 403.'],
        ],
      },
      {
        lines: [
          'llmp token generate --duration 48 --max-requests 500 --name notebook',
          'TOKEN=$(llmp token generate --duration 90m -q)       # for a script',
          'llmp token revoke 3fa91c2e --reason "leaked"         # refused from the next request on',
          'llmp token reactivate 3fa91c2e                       # the undo, with its count',
          'llmp token whois < leaked.txt                        # which one a secret belongs to',
        ],
      },
      'More: llmp(7).',
    ],
  },
  security: {
    summary: 'where secrets may stand, and where they must not',
    blocks: [
      'Whoever has the management token may do everything. It is looked for in this order: `--management-token`, which `ps` shows to others; `--management-token-file`, where - is standard input; the command or file of the context in use, so that a token in the environment is not sent to another daemon; `MANAGEMENT_TOKEN`; `MANAGEMENT_TOKEN_FILE`; and on a terminal it is asked for and not shown.',
      {
        entries: [
          ['upstream keys', 'Are read from a file, standard input or a prompt, never from an option.'],
          ['secrets of tokens', 'Are shown once. `--out FILE` writes one with mode 0600 and overwrites nothing.'],
          [
            'a leaked secret',
            'Goes to `llmp token whois` on standard input. In the place of an id it is refused before anything is sent, for it is in the history of the shell then.',
          ],
          [
            '--server',
            'Over http beyond this machine the management token goes in clear text, and a warning says so. Use https, or unix:PATH.',
          ],
          [
            'names',
            'From the daemon drive neither the terminal nor a spreadsheet, and completion gives none to the shell that it would read as more than a word.',
          ],
          ['changes', 'Are audited, with `--reason`. Several at once want `--yes`; `-n` says what would happen.'],
        ],
      },
      'More: llmp(7).',
    ],
  },
};
