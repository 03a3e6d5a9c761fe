/** What the declarations of the commands do not say: the prose of the manual's pages, by the first word of the command line. */
import type { Block } from '../help/prose.js';
import { keyBlocks } from './keys.js';

export interface Description {
  description: readonly Block[];
  sections?: readonly (readonly [title: string, contents: readonly Block[]])[];
  exitStatus?: string;
  seeAlso?: readonly string[];
}

export const OVERVIEW: readonly Block[] = [
  "llmp stands between clients and the API of a language-model provider. The provider's key stays in a project; clients get tokens for it, which expire by themselves, may carry a cap, and can be revoked and brought back.",
  'One program does all of it. `llmp daemon` is the proxy; `llmp token`, `llmp project` and the others ask a running daemon over its management API, for which they need its address (`--server`, or `llmp context`) and its management token. `llmp(7)` explains concepts and states, `llmp.env(5)` the settings of the daemon.',
  'Data goes to standard output and everything else to standard error. There is an option for every question that is asked on a terminal, and elsewhere none is asked.',
];

const SETTINGS = ['llmp.env(5)'];

export const DESCRIPTIONS: Readonly<Record<string, Description>> = {
  daemon: {
    description: [
      'Runs the proxy until it is told to end, and logs to standard output, a line each (`LOG_FORMAT`). Settings come from the environment, from the file of `--env-file`, or from systemd credentials, in this order.',
      'It listens on `LISTEN_ADDR`. `/v1` is for clients, `/manage` for the operator; `/live` and `/ready` say whether it runs, and whether it can serve. `GET /manage/openapi.json` describes the management API as OpenAPI 3.1.',
    ],
    sections: [
      [
        'SIGNALS',
        [
          {
            entries: [
              ['SIGHUP', 'Reads the settings again and applies those that need no restart.'],
              [
                'SIGTERM, SIGINT',
                'Ends it: `/ready` answers 503 at once, connections are accepted for `SHUTDOWN_DELAY` more, and what is in flight has `SHUTDOWN_GRACE`. A second one does not wait.',
              ],
            ],
          },
        ],
      ],
      [
        'SYSTEMD',
        [
          'The package has `llmp.service`, `llmp@.service` for several instances (`llmp@1` with /etc/llmp/llmp-1.env and folders of its own), and what makes their user and folders, in config/systemd. They start with `/etc/llmp/llmp.env`, which the group llmp may read, and the management token in `/etc/llmp/credentials/management-token`, which root alone may. `ENCRYPTION_KEY`, `ENCRYPTION_KEY_PREVIOUS`, `DATABASE_URL` and `REDIS_PASSWORD` may be credentials too: `/etc/credstore/llmp.encryption-key`, `llmp.database-url` and so on. What stands in the file of settings comes before a credential.',
          'Each unit sets `MemoryHigh=1G`. Node.js sizes its heap by that limit, to about 550 MB, and the daemon answers 503 while nine tenths of its heap are in use; `systemctl edit llmp` raises the limit. `systemctl reload` checks the settings first, without the credentials: systemd gives these to the daemon alone.',
          {
            entries: [
              [
                'up',
                'once it listens and is ready; it also counts as up while migrations wait for an operator, or when a database that it cannot reach has not come for 20 seconds. `systemctl status` then says what is missing, as `/ready` does, and it serves as soon as that comes. Migrations at the start may take their time.',
              ],
              [
                'status line',
                'what it lacks or does without, requests a second over the last minute, requests in flight, active tokens; five seconds old at most.',
              ],
              [
                'reload',
                'looks at the settings first: what is wrong with them makes `systemctl reload` fail and changes nothing. Credentials are as they were at the start.',
              ],
              [
                'watchdog',
                'is content as long as the event loop turns, whatever the database does; a process that stands still for `WatchdogSec=` (60 s) is ended and started again.',
              ],
              [
                'stop',
                'may take `SHUTDOWN_DELAY` and `SHUTDOWN_GRACE` and half a minute for what is then to be written, whatever `TimeoutStopSec=` says.',
              ],
              ['wrong settings', 'exit status 78, after which it is not started again.'],
              [
                'ports below 1024',
                'need `AmbientCapabilities=CAP_NET_BIND_SERVICE`, `CapabilityBoundingSet=CAP_NET_BIND_SERVICE` and `PrivateUsers=no` in `systemctl edit llmp`.',
              ],
            ],
          },
          'In the journal each record is a line with its priority (`journalctl -u llmp -p warning`), and without a time of its own.',
        ],
      ],
      [
        'FILES',
        [
          {
            entries: [
              ['data/llmp.db', 'The database, unless `DATABASE_URL` says otherwise.'],
              [
                'data/llmp.db.key',
                'The encryption key, without `ENCRYPTION_KEY`. Back it up, apart from the database.',
              ],
              ['data/audit.log, data/audit-use.log', 'The audit files.'],
            ],
          },
        ],
      ],
    ],
    exitStatus:
      '0 after SIGTERM or SIGINT; 69 when an address is in use; 70 for a defect; 77 when a file may not be read or written; 78 when the settings are wrong or another daemon has the database; 130 or 143 at the second signal.',
    seeAlso: [...SETTINGS, 'systemctl(1)', 'systemd.exec(5)'],
  },
  dispatcher: {
    description: [
      'Takes the events that daemons publish to the stream in Redis (`REDIS_ADDR`) to a file or a service (`DISPATCHER_SERVICE`). Any number of dispatchers share the work. An event is acknowledged once the back end has it, so that it may come twice, with the same id, and is not lost unless the stream is trimmed first.',
      'An event that alone is refused, five times, is set aside in `llmp:events:dead`; `--replay-dead` puts those back. A key that is refused pauses everything and is tried again once a minute.',
    ],
    sections: [
      [
        'SIGNALS',
        [
          {
            entries: [
              ['SIGHUP', 'Opens the file of `DISPATCHER_SERVICE=file` anew, and tries a refused key again.'],
              ['SIGTERM, SIGINT', 'Ends it: what is on its way has `SHUTDOWN_GRACE`, the rest is left to others.'],
            ],
          },
        ],
      ],
      [
        'SYSTEMD',
        [
          '`llmp-dispatcher.service` runs it as a user of its own, who may read `/etc/llmp/llmp.env` and nothing that the daemon keeps. `DISPATCHER_API_KEY` and `REDIS_PASSWORD` may be credentials: `/etc/credstore/llmp.dispatcher-api-key` and `llmp.redis-password`. It is up once it reads the stream, or when Redis has not come for 20 seconds; a back end that fails shows in the status line and stops nothing. Of everything else see llmp-daemon(8).',
        ],
      ],
    ],
    exitStatus:
      '0 after SIGTERM or SIGINT, or with `--once` when all was forwarded; 69 when Redis, the back end or an address cannot be had; 77 when a file may not be written; 78 when the settings are wrong.',
    seeAlso: SETTINGS,
  },
  init: {
    description: [
      'Makes a management token, asks where to listen, for the database, Redis and the provider, and writes an env file, the files of secrets with mode 0600, and a unit for systemd. What it will write is shown first; nothing is written before that is confirmed. In the end it looks whether all is good, as llmp-doctor(1) does, and names the next commands.',
      'What is there stays as it is unless something else is asked for, so it may be run again. Every question has an answer on the line: `--set`, and `--non-interactive` for the rest.',
    ],
    exitStatus: '9 when what was written is not good. Else as of every command: llmp(1).',
    seeAlso: ['llmp-doctor(1)', 'llmp-daemon(8)', 'llmp.env(5)'],
  },
  doctor: {
    description: [
      'Looks at settings, files, database, Redis, provider, system, daemon and terminal, changes nothing, and says of each what it found and what mends it. No secret is shown.',
    ],
    exitStatus: '9 when a check failed; a warning is no failure. Else as of every command: llmp(1).',
    seeAlso: SETTINGS,
  },
  run: {
    description: [
      'Issues a token, runs the command with `OPENAI_API_KEY` and `OPENAI_BASE_URL` in its environment and without the management token, passes signals on to it, and revokes the token when it ends, in whatever way. Killed with SIGKILL itself, it leaves a token that withers: an hour later unless `--duration` says otherwise.',
    ],
    exitStatus:
      'That of the command; 128 and the number of the signal that ended it; 126 when it may not be executed, 127 when there is none. Else as of every command: llmp(1).',
    seeAlso: ['llmp-token(1)'],
  },
  tui: {
    description: [
      'Shows overview, tokens, projects, the audit log, the response cache and events in full screen, asks the daemon for what is shown every two seconds, and follows audit and events as they come. Filter, order and numbers are those of the daemon, not of what happens to be on the screen.',
      'What takes something away asks before, and a change that the daemon can take back is undone with `u`. A protected context has each change asked about; with `--readonly`, or in a context that is read-only, nothing is sent.',
      'When the daemon is away, what was known stays on the screen with its age, changes are not sent, and it is tried again by itself. Its secret is shown once after a token is issued, and only when `v` asks for it.',
      'Copying goes through the terminal (OSC 52), which may refuse it without a word; tmux does unless `set-clipboard` is on.',
    ],
    sections: [
      ['KEYS', keyBlocks()],
      [
        'FILTER',
        [
          'Words that must occur in the name, or begin the id, and `key:value`, all of which must hold. Quotes hold words together, commas part alternatives, and `!` in front negates:',
          { lines: ['ci !old project:web state:active,limited expires:<2h used:>90%'] },
        ],
      ],
      [
        'ENVIRONMENT',
        [
          {
            entries: [
              ['LLMP_REDUCED_MOTION', 'Anything but 0: nothing moves that need not.'],
              ['COLUMNS, LINES', 'The size of the frame of `--once` where there is no terminal.'],
              ['COLORTERM, FORCE_COLOR', 'How many colours there are, where `TERM` does not tell.'],
            ],
          },
        ],
      ],
    ],
    exitStatus:
      '0 when it is quit; 2 where there is no terminal; 6 when `--once` had no answer; 129, 130 or 143 when the terminal went, at ^C, and at SIGTERM. Else as of every command: llmp(1).',
    seeAlso: ['llmp-context(1)', 'llmp-token(1)'],
  },
  token: {
    description: [
      'A token is the right to send requests for a project until it expires. Its secret is shown once, when it is issued; afterwards it is known by its id, of which the first six characters are enough. Names of tokens need not be unique, so they do not stand for one.',
      'Revoked, a token is refused from the next request on, and what is in flight for it ends. Reactivated, it passes again, with its expiry and its count.',
    ],
  },
  project: {
    description: [
      "A project holds the provider's key, sealed in the database and never shown again. The key is read from a file, from standard input, or at a prompt that does not show it; there is no option for it, since `ps` and the history of the shell would keep it.",
      'Deactivated, a project has all of its tokens refused, and not one of them changed.',
    ],
  },
  cache: {
    description: [
      'The daemon keeps answers where their header fields allow it, with `HTTP_CACHE_ENABLED=true`. A purge removes them before their time; with several instances and Redis, for all of them.',
    ],
    seeAlso: SETTINGS,
  },
  audit: {
    description: [
      'Every change, and every refusal of one, is an audit record in the database, and a line in `AUDIT_LOG_FILE`; each use of a token is a line in `AUDIT_USE_LOG_FILE`. Each line holds the digest of the one before it, so that `verify` finds what was changed, removed, inserted, moved or cut off.',
      '`verify` reads the files and the database, and asks no daemon. It compares the lines with what the database noted of the file every minute, and each change with its record. Files that logrotate(8) has numbered, dated or compressed with gzip are found and read; those in another folder must be named, and those that another program compressed must be decompressed. Where older files were removed on purpose, `--from-line` says where to begin.',
      'What it cannot find: uses that were forged or removed behind the last one that is noted, at most a minute before a daemon was killed, and whatever is done by somebody who can write to the database as well.',
      'A daemon continues only its own chain. When the file is not the one that it wrote, or when the database lacks records that the file has (after a restore, or a failover to a replica that was behind), the daemon logs an error, writes a line whose action is audit.file_replaced, audit.file_cut or audit.database_behind, and reports `audit_file` as degraded in /ready until it is restarted. Look at the files before you restart it.',
    ],
    exitStatus:
      'Of `verify`: 9 when the files are not as they were written, or do not say what the database says. Else as of every command: llmp(1).',
    seeAlso: SETTINGS,
  },
  events: {
    description: [
      'Requests whose token is known, and changes, as they happen. With Redis they are those of all instances. Off a terminal each is a line of JSON.',
    ],
    seeAlso: ['llmp-dispatcher(8)'],
  },
  usage: {
    description: [
      'Adds up requests, hits, refusals, errors, and the model tokens that the provider counted, where it gives counts: a stream of chat completions has them if its client asks for stream_options.include_usage. Usage is written every five seconds and kept for `USAGE_RETENTION`.',
    ],
    seeAlso: SETTINGS,
  },
  migrate: {
    description: [
      'The daemon brings the schema up to date when it starts, unless `AUTO_MIGRATE=false`. Several instances wait for each other, and what was killed in the middle is completed by the next.',
      '`status` and `up` ask a running daemon; with `--direct` they open the database themselves. `rekey` always does, beside running daemons.',
    ],
    exitStatus:
      'Of `status --exit-code`: 9 when something is pending. Of `up`: 5 when the schema is newer than this build. Of `rekey`: 9 when neither key opens one. Else as of every command: llmp(1).',
    seeAlso: SETTINGS,
  },
  config: {
    description: [
      "The daemon's settings as it would read them here and now: from this environment and the file of `--env-file`. Nothing is connected to, and no secret is shown.",
    ],
    exitStatus: '9 when the settings are wrong. Else as of every command: llmp(1).',
    seeAlso: SETTINGS,
  },
  context: {
    description: [
      'A context is a daemon by name: its address, where its management token comes from (a file, or a command that a shell runs), the project of new tokens, and whether changes are asked about (`--protected`) or not sent at all (`--readonly`). Secrets are not kept in it.',
      '`-c NAME` or `LLMP_CONTEXT` takes one for a single command; else the one in use counts. `--server` and `LLMP_SERVER` come before it.',
    ],
    sections: [
      [
        'FILES',
        [
          {
            entries: [
              [
                '~/.config/llmp/config.toml',
                'The contexts; or `LLMP_CONFIG`, or llmp/config.toml in `XDG_CONFIG_HOME`. It must not be writable by others.',
              ],
            ],
          },
        ],
      ],
    ],
  },
  status: {
    description: [
      'What the probes say, and with a management token also how many projects and tokens there are, and how the database, the cache, the audit and the provider are.',
    ],
    exitStatus: '9 when the daemon is not ready. Else as of every command: llmp(1).',
  },
  demo: {
    description: [
      'Needs no provider, key, setting or network: the stand-in provider, the daemon and its database live in a temporary folder, which is removed at the end.',
    ],
  },
  completion: {
    description: [
      'Prints a script that has the shell ask llmp what may come next: commands, options, their values, files, and from the daemon the ids of tokens and the names of projects. What would take long or a question is left out: after 800 ms at the latest there is an answer, and no prompt is shown and no `--token-command` run.',
    ],
    sections: [
      [
        'INSTALLATION',
        [
          {
            entries: [
              ['bash', 'In ~/.bashrc: `source <(llmp completion bash)`'],
              ['zsh', 'In ~/.zshrc, behind compinit: `source <(llmp completion zsh)`'],
              ['fish', 'Once: `llmp completion fish > ~/.config/fish/completions/llmp.fish`'],
            ],
          },
        ],
      ],
    ],
  },
  man: {
    description: [
      'For where npm has not put the pages into the way of man(1): shows them with it, without it by groff, and without that as plain text; with a pager on a terminal only.',
    ],
  },
};
