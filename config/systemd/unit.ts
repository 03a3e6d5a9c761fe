/** The systemd unit that `llmp init` writes for its env file. */
import { createHash } from 'node:crypto';
import { sandbox, START_LIMIT, SUPERVISION } from './sandbox.js';

export interface UnitOptions {
  /** Absolute paths of node and of the script of llmp. */
  command: readonly [node: string, script: string];
  /** An absolute path. */
  envFile: string;
  /** Absolute paths of files that settings are read from, by the name of the setting. */
  files: ReadonlyMap<string, string>;
  /** Whether it listens on a port below 1024. */
  needsLowPort: boolean;
}

/** The folders of a unit of this name in systemd. */
export const STATE_FOLDER = '/var/lib/llmp';
export const LOGS_FOLDER = '/var/log/llmp';

/**
 * The unit runs as a dynamic user, which cannot read these files. systemd passes them as credentials, and the environment, which overrides the env
 * file, names their paths. Credentials are copied at start: a change needs a restart, and a reload only reopens the audit files.
 */
function textOf({ command, envFile, files, needsLowPort }: UnitOptions): string {
  const credentials = [...files].map(([name, path]) => ({
    name,
    path,
    credential: name.toLowerCase().replaceAll('_', '-'),
  }));
  const inHome = command.some((path) => /^\/(?:home|root)\//.test(path));
  return `[Unit]
Description=llmp, a token-gated reverse proxy for language-model APIs
Documentation=man:llmp-daemon(8) man:llmp.env(5)
Wants=network-online.target
After=network-online.target
${START_LIMIT}
[Service]
ExecStart=${word(command[0])} -- ${word(command[1])} daemon --env-file %d/llmp.env
LoadCredential=llmp.env:${specifiersEscaped(envFile)}
${credentials.map(({ name, path, credential }) => `LoadCredential=${credential}:${specifiersEscaped(path)}\nEnvironment=${name}_FILE=%d/${credential}\n`).join('')}ExecReload=/bin/kill -HUP $MAINPID
${SUPERVISION}SyslogIdentifier=llmp

DynamicUser=yes
# A dynamic user has no home folder.
Environment=HOME=${STATE_FOLDER}
StateDirectory=llmp
StateDirectoryMode=0700
LogsDirectory=llmp
LogsDirectoryMode=0700
RuntimeDirectory=llmp
${sandbox({ needsLowPort, protectHome: inHome ? 'read-only' : 'yes' })}
[Install]
WantedBy=multi-user.target
`;
}

const specifiersEscaped = (text: string) => text.replaceAll('%', '%%');

/** Quotes one word of a command line for systemd. */
function word(text: string): string {
  const escaped = specifiersEscaped(text).replaceAll('$', '$$$$');
  return /^[\w./%$@+-]+$/.test(escaped) ? escaped : `"${escaped.replace(/["\\]/g, '\\$&')}"`;
}

const ADVICE =
  'To change the unit: systemctl edit llmp.service. If you edit this file, llmp init will not update it any more.';
const HEAD = /^# Written by llmp init, ([0-9a-f]{16})\. .*\n/;

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16);

/** The text of the unit. Its first line has a digest, which shows whether the unit was changed by hand. */
export function unitText(options: UnitOptions): string {
  const text = textOf(options);
  return `# Written by llmp init, ${digestOf(text)}. ${ADVICE}\n${text}`;
}

/** Whether a unit was written by `unitText`, changed by hand afterwards, or not written by llmp at all. */
export function authorOf(unit: string): 'llmp' | 'changed' | 'foreign' {
  const [head = '', digest] = HEAD.exec(unit) ?? [];
  if (digest === undefined) return 'foreign';
  return digestOf(unit.slice(head.length)) === digest ? 'llmp' : 'changed';
}
