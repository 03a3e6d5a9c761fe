/** The prose of the manual pages that the declarations of the commands do not contain, by the first word of the command line. */
import { PROFILE_NAMES } from '../profiles.js';
import { type Block, terms } from '../help/prose.js';
import { commandBlock, keySection } from './keys.js';

export interface Description {
  description: readonly Block[];
  /** By their titles. */
  sections?: Readonly<Record<string, readonly Block[]>>;
  exitStatus?: string;
  seeAlso?: readonly string[];
}

export const OVERVIEW: readonly Block[] = [
  "llmp is a reverse proxy between clients and the API of a language-model provider. Each project holds a provider's API key. Clients get tokens for a project instead of the key: a token expires by itself, can have a request cap, and can be revoked and reactivated.",
  'The program contains all parts of the system. `llmp daemon` is the proxy. Management commands such as `llmp token` and `llmp project` send requests to the management API of a running daemon. They need its address (`--server`, or `llmp context`) and its management token, the secret of an operator, or a session (`llmp login`). `llmp(7)` explains concepts and token states, and `llmp.env(5)` the settings of the daemon.',
  'Data goes to standard output, messages and errors go to standard error. Every prompt has an option that answers it; without a terminal llmp never prompts.',
];

const SETTINGS = ['llmp.env(5)'];

export const DESCRIPTIONS: Readonly<Record<string, Description>> = {
  daemon: {
    description: [
      'Runs the proxy until it receives a signal. It logs to standard output, one record per line (`LOG_FORMAT`). Settings come from the environment, from the file in `--env-file`, and from systemd credentials, in this order.',
      'The daemon listens on `LISTEN_ADDR`. `/v1` is for clients, and `/manage` is for operators. `/live` shows whether the daemon is running, and `/ready` whether it can serve requests. `GET /manage/openapi.json` describes the management API as OpenAPI 3.1.',
    ],
    sections: {
      SIGNALS: [
        terms({
          SIGHUP: 'Reads the settings again and applies those that do not need a restart.',
          'SIGTERM, SIGINT':
            'Stops the daemon. `/ready` responds with 503 immediately, new connections are accepted for `SHUTDOWN_DELAY`, and requests in flight then have `SHUTDOWN_GRACE` to finish. A second signal stops the daemon immediately.',
        }),
      ],
      SYSTEMD: [
        'The package contains units in config/systemd: `llmp.service`, and `llmp@.service` for several instances (`llmp@1` uses /etc/llmp/llmp-1.env and its own folders), with files that create their users and folders. The units read `/etc/llmp/llmp.env`, which the group llmp can read, and the management token in `/etc/llmp/credentials/management-token`, which only root can read. `ENCRYPTION_KEY`, `ENCRYPTION_KEY_PREVIOUS`, `DATABASE_URL` and `REDIS_PASSWORD` can also be credentials: `/etc/credstore/llmp.encryption-key`, `llmp.database-url` and so on. The settings file takes precedence over credentials.',
        'Each unit sets `MemoryHigh=1G`. Node.js derives a heap limit of about 550 MB from it, and the daemon responds with 503 while more than nine tenths of its heap are in use. Raise the limit with `systemctl edit llmp`. `systemctl reload` checks the settings first, but without credentials, because systemd passes them to the daemon only.',
        terms({
          up: 'The unit is up when the daemon listens and is ready. It also counts as up while migrations wait for an operator, and when the database has been unreachable for 20 seconds. `systemctl status` then shows what is missing, as `/ready` does, and the daemon serves requests as soon as it is available. Migrations at startup have no time limit.',
          'status line':
            'Missing and degraded parts, requests per second over the last minute, requests in flight, and active tokens. It is updated every five seconds.',
          reload:
            'Checks the settings first. If a setting is wrong, `systemctl reload` fails and nothing changes. Credentials are read at startup only.',
          watchdog:
            'Checks the event loop, not the database. systemd restarts a process that does not respond for `WatchdogSec=` (60 s).',
          stop: 'Can take `SHUTDOWN_DELAY` plus `SHUTDOWN_GRACE`, plus half a minute to write remaining data, regardless of `TimeoutStopSec=`.',
          'wrong settings': 'The daemon exits with status 78 and is not restarted.',
          'ports below 1024':
            'Add `AmbientCapabilities=CAP_NET_BIND_SERVICE`, `CapabilityBoundingSet=CAP_NET_BIND_SERVICE` and `PrivateUsers=no` with `systemctl edit llmp`.',
        }),
        'In the journal each log record is a line with its priority (`journalctl -u llmp -p warning`) and without its own timestamp.',
      ],
      FILES: [
        terms({
          'data/llmp.db': 'The database, unless `DATABASE_URL` names another one.',
          'data/llmp.db.key':
            'The encryption key, if `ENCRYPTION_KEY` is not set. Back it up separately from the database.',
          'data/audit.log, data/audit-use.log': 'The audit files.',
        }),
      ],
    },
    exitStatus:
      '0 after SIGTERM or SIGINT; 69 if an address is in use; 70 after an internal error; 77 if a file cannot be read or written; 78 if a setting is wrong or another daemon uses the database; 130 or 143 after a second signal.',
    seeAlso: [...SETTINGS, 'systemctl(1)', 'systemd.exec(5)'],
  },
  dispatcher: {
    description: [
      'Reads the events that daemons publish to a Redis stream (`REDIS_ADDR`), and forwards them to a file or a service (`DISPATCHER_SERVICE`). Several dispatchers can share the work. An event is acknowledged after the service has accepted it. Delivery is therefore at least once: an event can be delivered twice, with the same ID, and is lost only if Redis trims the stream first.',
      'If the service refuses an event five times by itself, the event is moved to `llmp:events:dead`; `--replay-dead` moves such events back. If the service refuses the API key, the dispatcher pauses and tries again once a minute.',
    ],
    sections: {
      SIGNALS: [
        terms({
          SIGHUP: 'Reopens the file of `DISPATCHER_SERVICE=file`, and retries a refused API key.',
          'SIGTERM, SIGINT':
            'Stops the dispatcher. Deliveries in progress have `SHUTDOWN_GRACE` to finish; other dispatchers take over the remaining events.',
        }),
      ],
      SYSTEMD: [
        '`llmp-dispatcher.service` runs as its own user, who can read `/etc/llmp/llmp.env` but none of the data of the daemon. `DISPATCHER_API_KEY` and `REDIS_PASSWORD` can be credentials: `/etc/credstore/llmp.dispatcher-api-key` and `llmp.redis-password`. The unit is up when the dispatcher reads the stream, or when Redis has been unreachable for 20 seconds. A service that fails is shown in the status line and does not stop the unit. For everything else see llmp-daemon(8).',
      ],
    },
    exitStatus:
      '0 after SIGTERM or SIGINT, or with `--once` after all events were forwarded; 69 if Redis, the service or an address is unavailable; 77 if a file cannot be written; 78 if a setting is wrong.',
    seeAlso: SETTINGS,
  },
  init: {
    description: [
      'Generates a management token, asks for the listen address, the database, Redis and the provider, and writes an env file, secret files with mode 0600, and a systemd unit. It first shows what it will write, and asks for confirmation. Then it runs the checks of llmp-doctor(1) and prints the next commands.',
      'Existing values do not change unless you enter others, so you can run `llmp init` again. Every question has an option: `--set` for a setting, and `--non-interactive` for existing values and defaults.',
    ],
    exitStatus:
      '9 if a check of the written setup failed. That the name of the provider does not resolve is a warning: a machine can be set up before it has a network. For other codes see llmp(1).',
    seeAlso: ['llmp-doctor(1)', 'llmp-daemon(8)', 'llmp.env(5)'],
  },
  doctor: {
    description: [
      'Checks settings, files, database, Redis, provider, system, daemon and terminal. For each check it shows what it found and, if there is a problem, how to fix it. It changes nothing and shows no secrets.',
    ],
    exitStatus: '9 if a check failed; a warning is not a failure. For other codes see llmp(1).',
    seeAlso: SETTINGS,
  },
  run: {
    description: [
      "Issues a token, and runs the command with the token and the base URL in the variables of the SDK of the project's provider: `OPENAI_API_KEY` and `OPENAI_BASE_URL`, `ANTHROPIC_API_KEY` and `ANTHROPIC_BASE_URL`, `GEMINI_API_KEY` and `GOOGLE_GEMINI_BASE_URL`, or `AZURE_OPENAI_API_KEY` and `AZURE_OPENAI_ENDPOINT`. `--for` names other SDKs, or several. All other keys of providers are removed from the environment of the command, and so are the secrets of the settings in llmp.env(5), with the paths of their files and URLs with a password, such as `DATABASE_URL`.",
      `Agents that read more than these variables are known by the name of their file: ${PROFILE_NAMES.join(', ')}. They get what they read first, so that neither their settings nor a stored login lead around the daemon: arguments, which are put in front of their own, and files in a private folder, which is removed when the command ends. llmp changes no file of yours. \`--as\` names the agent if the command has another name, and \`-n\` shows what would be set. A command that cannot speak the API of the project is not started. \`llmp self\` works inside the command.`,
      'With `--exchange` no management token is needed: the JWT of a job or pod is exchanged for a token with the terms of a trust, see llmp-trust(1). The JWT is read from `--jwt-file`, or with `--audience` from GitHub Actions, whose variables `ACTIONS_ID_TOKEN_REQUEST_URL` and `ACTIONS_ID_TOKEN_REQUEST_TOKEN` the command does not get.',
      'llmp forwards signals to the command, and revokes the token when the command ends for any reason. If llmp itself is killed with SIGKILL, the token expires after `--duration`, by default one hour, and the private folder stays.',
    ],
    exitStatus:
      "The command's exit code, or 128 plus the number of the signal that ended it; 126 if the command cannot be executed, 127 if it was not found. For other codes see llmp(1).",
    seeAlso: ['llmp-connect(1)', 'llmp-self(1)', 'llmp-token(1)'],
  },
  connect: {
    description: [
      'Prints the settings that point an agent or a program at the daemon permanently: lines for the profile of the shell, or the content of the file that the agent reads. They contain the path of the token file: the token is read from there when the shell or the agent starts. Nothing is written, and no secret is printed.',
      'The daemon is asked for the API of the project with the token in the file; no management token is needed. With `--for` it is not asked. Replace the content of the file when the token expires: the settings stay the same.',
      'Settings of the agent that are already in its file stay: add the printed ones to them. `llmp run` needs no settings.',
    ],
    exitStatus:
      '2 if the command cannot speak the API of the project; 1 if the token is unknown, expired or revoked. For other codes see llmp(1).',
    seeAlso: ['llmp-run(1)', 'llmp-self(1)', 'llmp-token(1)'],
  },
  self: {
    description: [
      'Reads a token and the address of the daemon from the variables of an SDK, the first that has a token, and asks the daemon what is left of it. It needs no management token, and never prints the secret. Without a base URL in the environment, and with `--server`, it asks the daemon that other commands use. Keys of providers are not sent anywhere.',
    ],
    exitStatus:
      '9 if less is left than `--warn` allows; 1 if the token is unknown, expired or revoked; 5 if its project is inactive. For other codes see llmp(1).',
    seeAlso: ['llmp-run(1)', 'llmp-token(1)'],
  },
  tui: {
    description: [
      'Shows an overview, tokens, projects, the audit log, the response cache and events in a full-screen interface. It refreshes the screen every two seconds, and streams audit records and events. Filters, sort orders and totals apply to all data of the daemon, not only to the visible rows.',
      'Destructive actions ask for confirmation, and `u` undoes a change that the daemon can reverse. In a protected context every change asks for confirmation. With `--readonly`, or in a read-only context, changes are refused.',
      'While the daemon is unreachable, the last data stays on the screen with its age, changes are not sent, and llmp reconnects by itself. The secret of a new token can be shown once, with `v`.',
      'Copying uses the terminal (OSC 52). A terminal can ignore the request without an error. Within tmux, the text is copied to its paste buffer (`prefix ]` pastes it), and tmux passes it on to its terminal.',
    ],
    sections: {
      ...keySection(),
      'COMMAND LINE': [
        '`:` opens a command line. Tab completes commands and names, also from a few of their letters, and up recalls earlier commands. The names of actions work as commands, too: `:mark all`.',
        commandBlock(),
      ],
      FILTER: [
        'A filter consists of words, which must be part of the name or the beginning of the ID, and of `key:value` terms. All of them must match. Use quotes around text with spaces, commas between alternatives, and `!` to negate:',
        { lines: ['ci !old project:web state:active,limited expires:<2h used:>90%'] },
      ],
      FILES: [
        terms({
          '~/.config/llmp/theme.toml':
            'A skin (`skin = "light"`: default, light, color-blind or none), and styles for roles of text: `[colors]` and lines such as `key = "bold #0550ae"`.',
          '~/.config/llmp/keys.toml':
            'Other keys for actions: `[tokens]` and lines such as `revoke = "X"`. `llmp tui --print-keys` prints such a file.',
          '~/.config/llmp/views.toml':
            'The views that `:save` has stored and the columns that were chosen, for each context. The terminal UI writes it; comments are lost.',
          '~/.local/state/llmp/tui-history':
            'The last 200 commands of the command line, without those that contain a secret. With `XDG_STATE_HOME` it is llmp/tui-history there.',
        }),
        'The first three are in the folder of the contexts file, see llmp-context(1). Only you may be able to write them. A mistake is reported with its line, and the default applies there.',
      ],
      ENVIRONMENT: [
        terms({
          LLMP_REDUCED_MOTION: 'Any value except 0: no animations.',
          'COLUMNS, LINES': 'The size of the frame of `--once` without a terminal.',
          'COLORTERM, FORCE_COLOR': 'The number of colors, if `TERM` does not determine it.',
        }),
      ],
    },
    exitStatus:
      '0 after quitting; 2 without a terminal; 6 if the daemon did not respond to `--once`; 129 if the terminal was closed, 130 after ^C, 143 after SIGTERM. For other codes see llmp(1).',
    seeAlso: ['llmp-context(1)', 'llmp-token(1)'],
  },
  token: {
    description: [
      'A token allows a client to send requests for a project until the token expires. Its secret is shown once, when the token is issued. Commands identify a token by its ID, by a unique prefix of six or more characters of it, by its name if no other token has that name, or by what lists show of its secret (`sk-wt-4esc…Jgwc`, also with `...`). `generate` accepts a name that another token has.',
      'When a token is revoked, new requests are refused and requests in flight are ended. A reactivated token works again, with the same expiry and request count.',
      'A budget limits what a token may spend, in US dollars or model tokens: `update intern --budget-usd 20`. At the limit new requests are refused with 402 until the budget resets (`--budget-period`) or is raised. With the mode `soft`, which is the default, requests in flight can exceed it; with `hard` they cannot.',
      '`print` is for programs that run a command to get their key, such as `apiKeyHelper` of Claude Code. It prints the same token until 80 % of its lifetime are over, or the token is revoked. While the daemon cannot be reached it prints the last token, until that expires.',
      '`exchange` is for jobs and pods that have a JWT of their platform and no secret of llmp. A trust says which JWTs are exchanged, and the terms of the token, see llmp-trust(1). A JWT can be exchanged once.',
    ],
    sections: {
      'MANY TOKENS': [
        '`generate --from FILE` issues a token for each row of a CSV file. The first line names the columns: `name`, `project`, `duration`, `max-requests` and `like`, in any order, with the values that the options of these names take. Each row needs a value for each column; options on the command line apply to the columns that the file does not have. `generate --query` issues tokens again, for example `state:expired project:web`. A file can have up to 10,000 rows.',
        'All rows are checked before the first token is issued, and `--dry-run` shows what would be issued. The secrets go to standard output as CSV, with `-o json` or `-o jsonl` as JSON, or with `--out` to a new file. The columns `line` and `like` say which row or token each one is for. Tokens are issued one after the other. If one fails, those before it are complete, and a message says how to issue the rest.',
      ],
      FILES: [
        terms({
          '~/.local/state/llmp/to-issue-*.csv':
            'The tokens that `generate --query` has not issued again because of a failure, for `--from`.',
          '$XDG_RUNTIME_DIR/llmp/token-*.json':
            'Tokens that `print` has issued, with mode 0600. Without `XDG_RUNTIME_DIR` they are in llmp-UID in the folder for temporary files. A folder that other users can write to is refused.',
        }),
      ],
    },
  },
  project: {
    description: [
      'A project holds an upstream key, which is the API key of the provider. The key is encrypted in the database and never shown again. It is read from a file, from standard input, or from a prompt that does not show it. There is no option for the key, because `ps` and the history of the shell would expose it.',
      'A project can have its own provider: `--provider` names a provider that llmp knows, and `--base-url` and `--auth` describe any other. A stored key is only sent to the host that it was given for, so a change to a provider on another host must come with its key. Projects without a provider use `UPSTREAM_BASE_URL` of the daemon.',
      'While a project is inactive its tokens are refused; the tokens themselves do not change.',
      'The routes, models, limits and budget of a project apply to all its tokens, in addition to those of each token. The limits and the budget are shared by the tokens.',
    ],
  },
  operator: {
    description: [
      'An operator is somebody, or a program, with a role in the management API. Its secret (`sk-op-` and 49 characters) can be used in place of the management token: in `MANAGEMENT_TOKEN`, in a context, and in the log-in form of the Admin UI. It is shown once, when the operator is created. Only the holder of the management token manages operators and trusts.',
      'A change takes effect with the next request, on all instances, and ends the sessions of the operator. Deactivating an operator also revokes the tokens that it has issued, in the same transaction, unless `--keep-tokens` is given. Operators are not deleted, because the audit log names them.',
      'Ceilings are the most that a token issued by the operator may have. A token above a ceiling is refused, never issued with less; so is one that names no lifetime or cap if the default is above the ceiling.',
    ],
    sections: {
      ROLES: [
        terms({
          viewer: 'Reads projects, tokens, usage and Top of its projects, and the status of the daemon.',
          auditor: 'Also reads the audit log and events.',
          issuer: 'Issues tokens within its ceilings, and sees and revokes those that it has issued.',
          operator: 'Does everything with tokens of its projects, and purges the cache.',
          admin: 'Does everything but manage operators and trusts.',
        }),
      ],
    },
    seeAlso: ['llmp-whoami(1)', 'llmp-login(1)', 'llmp-trust(1)', 'llmp-audit(1)'],
  },
  trust: {
    description: [
      'A trust says which JWTs are exchanged for tokens of a project: those of one issuer, for one audience, whose claims have exactly the given values. So a job of GitHub Actions or GitLab CI, a pod of Kubernetes or a SPIFFE workload gets a token without a stored secret. At least one claim must identify its owner, such as `repository` or `sub`. Exactly one trust must match a JWT. Each JWT is exchanged once.',
      'The daemon reads the public keys of the issuer from the address in its discovery document, or from a file in `JWKS_DIR` if the issuer does not publish them (`--jwks-file`).',
    ],
    seeAlso: ['llmp-token(1)', 'llmp-run(1)', 'llmp-operator(1)', ...SETTINGS],
  },
  login: {
    description: [
      'Logs in with the identity provider that the daemon uses (`OIDC_ISSUER`). It prints an address and a code, which you enter in a browser on any device, and waits. It opens no browser. The daemon says which role, projects and ceilings you have; `llmp whoami` shows them.',
      'The session lasts 8 hours. Its secret is in a file of the context with mode 0600, and is sent to no other daemon. The context becomes the current one; without `-c` it is the context of the address, or a new one with the name of the host. A context with a management token of its own is not changed.',
    ],
    sections: {
      FILES: [
        terms({
          '~/.config/llmp/NAME.session':
            'The secret of the session of the context NAME, in the folder of the contexts file; see llmp-context(1).',
        }),
      ],
    },
    exitStatus:
      '1 if you have no role, or the code has expired; 4 if the daemon has no identity provider. For other codes see llmp(1).',
    seeAlso: ['llmp-logout(1)', 'llmp-whoami(1)', 'llmp-context(1)', ...SETTINGS],
  },
  logout: {
    description: [
      'Ends the session of the context on all instances of the daemon, and removes its secret from this machine. The context stays.',
    ],
    exitStatus:
      '2 if the context has no session; 6 if the daemon is unreachable: then the secret is removed from this machine only. For other codes see llmp(1).',
    seeAlso: ['llmp-login(1)', 'llmp-context(1)'],
  },
  whoami: {
    description: [
      'Shows who the daemon takes you for, with the credential that other commands use: the holder of the management token, an operator, or a person who has logged in. It shows the role, the projects that you may see, the ceilings of tokens that you issue, and when the credential ends.',
    ],
    seeAlso: ['llmp-operator(1)', 'llmp-login(1)'],
  },
  prices: {
    description: [
      'llmp computes the cost of each request from the model tokens that the provider reports and the price of the model. Prices come from the file `PRICES_FILE` of the daemon, and from the list that is shipped with llmp. Nothing is fetched: a newer list comes with a newer version of llmp. The cost of a model without a price is unknown.',
      '`check` shows what `PRICES_FILE` lacks. `explain` shows which entry applies to a model, and how the cost of a request is computed.',
    ],
    sections: {
      PRICES_FILE: [
        'A JSON file. Its entries take precedence over the shipped ones. Amounts are decimal strings in US dollars per million tokens. `model` and `provider` select the requests; without `provider` the entry applies to all providers.',
        {
          lines: [
            '{"prices": [',
            '  {"model": "house-*", "input": "0.90", "output": "2.70", "max_output": 8192},',
            '  {"model": "gpt-4o-mini", "provider": "azure", "input": "0.165", "output": "0.66"}',
            ']}',
          ],
        },
        'Optional members are `cache_read`, `cache_write`, `cache_write_1h`, `reasoning`, `audio_input`, `audio_output`, `per_request`, `max_output`, `context`, `part_tokens`, `tiers` and `valid_from`; docs/prices.md describes them. The daemon reads the file at start and on SIGHUP. Recorded costs do not change.',
      ],
    },
    exitStatus: '9 if `explain` finds no price. For other codes see llmp(1).',
    seeAlso: ['llmp-usage(1)', ...SETTINGS],
  },
  cache: {
    description: [
      'With `HTTP_CACHE_ENABLED=true` the daemon caches responses whose headers allow it. A purge removes cached responses before they expire; with several instances and Redis it applies to all instances.',
    ],
    seeAlso: SETTINGS,
  },
  audit: {
    description: [
      'Every change, and every refused change, creates an audit record in the database and a line in `AUDIT_LOG_FILE`. Every use of a token is a line in `AUDIT_USE_LOG_FILE`. Each line contains the digest of the line before it. `verify` therefore detects lines that were changed, removed, inserted, moved or cut off.',
      '`verify` reads the files and the database, and does not need a daemon. It compares the lines with the anchors that the daemon stores in the database every minute, and each change with its record. It finds and reads files that logrotate(8) has renamed with a number or date or compressed with gzip. Name files in other folders as arguments, and decompress files that other programs have compressed. If older files were deleted on purpose, start with `--from-line`.',
      '`verify` cannot detect uses that were forged or removed after the last anchor, which is at most one minute before a daemon was killed, nor changes by someone who can also write to the database.',
      'A daemon continues only its own chain. If the file is not the one that it wrote, or the database lacks records that the file contains (after a restore, or a failover to a replica that was not up to date), the daemon logs an error, writes a line with the action audit.file_replaced, audit.file_cut or audit.database_behind, and reports `audit_file` as degraded in /ready until it is restarted. Inspect the files before you restart it.',
    ],
    exitStatus: 'For `verify`: 9 if a file was modified, or does not match the database. For other codes see llmp(1).',
    seeAlso: SETTINGS,
  },
  events: {
    description: [
      '`events tail` streams requests with a known token, and changes, as they happen; with `--since` it begins with stored events. `events list` lists stored events. With Redis both show the events of all instances; otherwise an instance stores its last 10,000 events. When piped, `events tail` writes one line of JSON per event.',
      '`WHY` is the cause of a failure, such as `revoked`, `expired`, `cap spent` or `provider unreachable`, or the code of an error that the provider reported. The key `why` of a query selects by a part of it. In JSON, `code` is the error code if llmp refused the request, and `error` says why in a sentence.',
    ],
    seeAlso: ['llmp-dispatcher(8)'],
  },
  undo: {
    description: [
      'Every command that changes something sends one batch ID with all its changes, and so does every dialog of the terminal UI and the Admin UI. `llmp undo` changes back what has this ID: it reactivates tokens that were revoked, revokes those that were created or reactivated, and restores the former values of projects.',
      'Whatever somebody has changed again since then stays as it is, and is listed with the reason. Changes that cannot be undone stay, too: a new API key, `revoke --project-id`, and `cache purge`.',
      'An undo is a batch itself: undo it to redo the changes. `llmp audit list --group batch` lists the last batches, and `llmp audit list --batch ID` the changes of one.',
    ],
    exitStatus:
      '1 if something stays as it is that could not be undone, or was changed since. For other codes see llmp(1).',
    seeAlso: ['llmp-audit(1)'],
  },
  usage: {
    description: [
      'Sums requests, cache hits, failures by kind, the model tokens that the provider reports, and the cost of the requests. `unknown` is a cost that cannot be computed; `$12.35+` is a sum to which requests of unknown cost must be added. `llmp prices check` lists the models without a price. A streamed chat completion reports model tokens only if its client requests stream_options.include_usage. The daemon writes usage every five seconds and keeps it for `USAGE_RETENTION`.',
    ],
    seeAlso: SETTINGS,
  },
  top: {
    description: [
      'Lists the tokens, projects or models with the most failures, requests or model tokens, or the highest cost, of the last 5 minutes, hour or 24 hours. A row of `model` is a pair of model and project, one of `model_total` a model over all projects. The last line is the total of all requests. The figures are those of all instances with the same database. In 24 hours there are no durations.',
      'The kinds of failures: llmp `refused` the request, the provider refused it (`provider refused`), it `failed`, or a revocation `cut` it off after it had begun. The durations are until the response of the provider started.',
      'A query with words or `model:` selects among the first 200 rows. For older requests use llmp-usage(1).',
    ],
    seeAlso: ['llmp-usage(1)', 'llmp-tui(1)'],
  },
  migrate: {
    description: [
      'The daemon migrates the database schema when it starts, unless `AUTO_MIGRATE=false`. Several instances wait for each other, and the next one completes a migration that was interrupted.',
      '`status` and `up` use a running daemon; with `--direct` they open the database themselves. `rekey` always opens the database, while daemons keep running.',
      '`copy` copies everything to an empty database: projects, tokens with all their counts, usage, audit records. Clients keep their tokens. Stop the daemon first; `--prepare` copies beforehand, while it runs, what never changes again, so that the rest takes less time. After ^C or a crash, `--resume` continues. At the end each table is read again and compared. Until then no daemon starts with the new database.',
      'The new database has the same encryption key, unless the file in `--to-env-file` has another one: then the upstream keys are encrypted with that.',
    ],
    exitStatus:
      'For `copy`: 4 if it was refused before anything was copied, 9 if a table differs, 69 if a database is unavailable. For `status --exit-code`: 9 if migrations are pending. For `up`: 5 if the schema is newer than this build. For `rekey`: 9 if a key could not be decrypted with either encryption key. For other codes see llmp(1).',
    seeAlso: SETTINGS,
  },
  backup: {
    description: [
      'Copies the SQLite database into one file, as it is at that moment, while the daemon runs or not. The file does not contain the encryption key, only its fingerprint. Without that key the file is useless: keep the key in another place. For a database server use its own tools.',
    ],
    exitStatus:
      '4 if nothing could be backed up, for example because the file exists; 9 if the settings do not have the key that the backup needs; 69 if the disk is full; 77 without permission for a file. For other codes see llmp(1).',
    seeAlso: ['llmp-restore(1)', ...SETTINGS],
  },
  restore: {
    description: [
      'Puts a backup in the place of the SQLite database. The daemon must be stopped. It compares the backup with the present database and says what was served since and would be forgotten: requests, cost, tokens that were issued or revoked. Then it asks for a confirmation, or needs `--yes`. The present database stays beside the restored one, under another name.',
    ],
    exitStatus:
      '2 if it was not confirmed; 4 if the backup cannot be used, for example because it needs another encryption key, or if a daemon runs; 69 if the disk is full; 77 without permission for a file. Then the present database is as it was. For other codes see llmp(1).',
    seeAlso: ['llmp-backup(1)', ...SETTINGS],
  },
  config: {
    description: [
      "Shows or checks the daemon's settings as they are in this environment and the file in `--env-file`. It connects to nothing and shows no secrets.",
    ],
    exitStatus: '9 if a setting is wrong. For other codes see llmp(1).',
    seeAlso: SETTINGS,
  },
  context: {
    description: [
      'A context is a named daemon: its address, the source of its management token (a file, a shell command, or a session), the default project for new tokens, and whether changes need a confirmation (`--protected`) or are refused (`--readonly`). A context contains no secrets: that of a session (`llmp login`) is in a file of its own.',
      '`-c NAME` or `LLMP_CONTEXT` selects a context for one command; the default is the current context. `--server` and `LLMP_SERVER` take precedence over contexts.',
    ],
    sections: {
      FILES: [
        terms({
          '~/.config/llmp/config.toml':
            'The contexts file. `LLMP_CONFIG` names another one; with `XDG_CONFIG_HOME` it is llmp/config.toml there. It must not be writable by other users.',
        }),
      ],
    },
  },
  status: {
    description: [
      'Shows the results of the health probes. With a management token it also shows what is wrong with the traffic of the last 15 minutes, why, and what to do; budgets that are spent to 80 % or more; the numbers of projects and tokens; and the state of the database, the cache, the audit log and the provider.',
    ],
    exitStatus: '9 if the daemon is not ready. For other codes see llmp(1).',
  },
  demo: {
    description: [
      'Starts a stand-in provider and a daemon. It needs no provider, key, setting or network. All data is in a temporary folder, which is removed when the demo ends.',
    ],
  },
  completion: {
    description: [
      'Prints a script with which the shell completes commands, options, their values and files and, with data from the daemon, token IDs and project names. Completion takes at most 800 ms; it never prompts, and it does not run a `--token-command`.',
    ],
    sections: {
      INSTALLATION: [
        terms({
          bash: 'In ~/.bashrc: `source <(llmp completion bash)`',
          zsh: 'In ~/.zshrc, after compinit: `source <(llmp completion zsh)`',
          fish: 'Once: `llmp completion fish > ~/.config/fish/completions/llmp.fish`',
        }),
      ],
    },
  },
  man: {
    description: [
      'Shows manual pages, also if npm has not installed them where man(1) finds them. It uses man(1), or prints plain text if man(1) is missing. On a terminal it uses a pager.',
    ],
  },
};
