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
    summary: 'environment variables',
    blocks: [
      'An option takes precedence over its environment variable. For the settings of the daemon see llmp.env(5), or run `llmp config show --origin`.',
      {
        entries: [
          ['LLMP_SERVER', 'Address of the daemon, as for `--server` (default: http://127.0.0.1:8080).'],
          ['LLMP_CONTEXT', 'The context to use, as for `-c`.'],
          ['LLMP_CONFIG', 'The file of contexts (default: llmp/config.toml in `XDG_CONFIG_HOME`, or in ~/.config).'],
          ['MANAGEMENT_TOKEN', 'The management token.'],
          ['MANAGEMENT_TOKEN_FILE', 'A file that contains the management token, as for `--management-token-file`.'],
          ['LLMP_PROJECT_ID', 'Default project for new tokens, by name or ID, as for `--project-id`.'],
          ['LLMP_OUTPUT', 'Output format, as for `-o`.'],
          ['LLMP_ASCII', '1: use ASCII only; 0: use symbols in every locale.'],
          ['NO_COLOR', 'Any value: do not use colors, as with `--no-color`.'],
          ['TERM', 'dumb: no colors, and no redrawing in place.'],
          ['LC_ALL, LC_CTYPE, LANG', 'The locale. If it is not UTF-8, llmp uses ASCII only.'],
          ['PAGER', 'Pager of `llmp man` if there is no man (default: less).'],
        ],
      },
    ],
  },
  formatting: {
    summary: 'output formats',
    blocks: [
      'Data goes to standard output, everything else to standard error. Control characters, for example in the name of a token, are shown as escapes: `\\x1b`.',
      {
        entries: [
          [
            '-o table',
            'The default. On a terminal: columns with titles, as many as fit, and relative times. When piped: fields separated by tabs, without titles, and RFC 3339 times.',
          ],
          ['-o json, --json', 'One JSON value. Errors are JSON objects on standard error.'],
          ['-o jsonl', 'One JSON value per line.'],
          ['-o csv', 'CSV with titles. Cells that a spreadsheet would run as a formula begin with an apostrophe.'],
          ['-o id', 'Only IDs, one per line, as input for another command.'],
          ['-q', 'Only errors on standard error; `token generate` prints only the secret.'],
        ],
      },
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
  'exit-codes': {
    summary: 'exit codes',
    blocks: [
      { entries: exitCodes },
      'If all of several IDs failed in the same way, the exit code is that of the failure; if only some failed, it is 1. `llmp run` exits with the exit code of its command, or with 128 plus the number of the signal that ended it.',
    ],
  },
  tokens: {
    summary: 'tokens, their states and secrets',
    blocks: [
      "A token is a right to send requests for a project, with the project's upstream key, until it expires. Its secret, `sk-wt-` and 49 characters, is shown once; what is kept is a digest. An id is not a secret: it names the token in lists, logs and commands, and its first six characters are enough as long as no other begins like it.",
      {
        entries: [
          ['active', 'Requests are accepted.'],
          ['expired', 'It has expired: 401.'],
          ['revoked', 'It was revoked; `llmp token reactivate` undoes that: 401.'],
          ['limited', 'It has reached its cap, `--max-requests`: 429.'],
          ['project off', 'Its project is deactivated: 403.'],
        ],
      },
      {
        lines: [
          'llmp token generate --duration 48 --max-requests 500 --name notebook',
          'TOKEN=$(llmp token generate --duration 90m -q)       # for a script',
          'llmp token revoke 3fa91c2e --reason "leaked"         # refused from the next request',
          'llmp token reactivate 3fa91c2e                       # undo; the request count stays',
          'llmp token whois < leaked.txt                        # find the token of a secret',
        ],
      },
      'More: llmp(7).',
    ],
  },
  security: {
    summary: 'how to handle secrets',
    blocks: [
      'Whoever has the management token may do everything. It is looked for in this order: `--management-token`, which `ps` shows to others; `--management-token-file`, where - is standard input; the command or file of the context in use, so that a token in the environment is not sent to another daemon; `MANAGEMENT_TOKEN`; `MANAGEMENT_TOKEN_FILE`; and on a terminal it is asked for and not shown.',
      {
        entries: [
          ['upstream keys', 'Are read from a file, standard input or a prompt, never from an option.'],
          ['secrets of tokens', 'Are shown once. `--out FILE` writes one with mode 0600 and overwrites nothing.'],
          [
            'a leaked secret',
            'Pass it to `llmp token whois` on standard input. As an argument it would be in the history of the shell, so llmp refuses it there and sends nothing.',
          ],
          [
            '--server',
            'Over http to another machine the management token is sent in clear text, and llmp warns about it. Use https or unix:PATH.',
          ],
          [
            'names',
            'Names that come from the daemon cannot control the terminal, a spreadsheet or the shell: they are escaped, and completion omits names that are more than one word to the shell.',
          ],
          [
            'changes',
            'Are audited, with `--reason`. Changes of several tokens need `--yes` in a script; `-n` shows what would change.',
          ],
        ],
      },
      'More: llmp(7).',
    ],
  },
};
