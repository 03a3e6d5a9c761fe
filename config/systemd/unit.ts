/** The unit of systemd that `llmp init` writes for its env file. */
import { createHash } from 'node:crypto';
import { sandbox, START_LIMIT, SUPERVISION } from './sandbox.js';

export interface UnitOptions {
  /** Absolute paths of node and of llmp's script. */
  command: readonly [node: string, script: string];
  /** Absolute. */
  envFile: string;
  /** Files that settings are read from, by the name of the setting: absolute. */
  files: ReadonlyMap<string, string>;
  /** Whether it listens on a port below 1024. */
  needsLowPort: boolean;
}

/** Where systemd keeps what a unit of this name writes. */
export const STATE_FOLDER = '/var/lib/llmp';
export const LOGS_FOLDER = '/var/log/llmp';

/**
 * It runs as a user that systemd makes up, who can read none of these files: systemd hands them over as credentials, of which the
 * daemon is told by the environment, which comes before the env file. They are as they were at the start: a change takes a restart, and a
 * reload only opens the audit files anew.
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
# A user that systemd makes up has no home folder.
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

/** One word of a command line, as systemd reads it. */
function word(text: string): string {
  const escaped = specifiersEscaped(text).replaceAll('$', '$$$$');
  return /^[\w./%$@+-]+$/.test(escaped) ? escaped : `"${escaped.replace(/["\\]/g, '\\$&')}"`;
}

const HEAD =
  /^# Written by llmp init, ([0-9a-f]{16})\. Whoever changes it owns it; better: systemctl edit llmp\.service\n/;

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16);

/** With a first line that tells whether somebody changed it since. */
export function unitText(options: UnitOptions): string {
  const text = textOf(options);
  return `# Written by llmp init, ${digestOf(text)}. Whoever changes it owns it; better: systemctl edit llmp.service\n${text}`;
}

/** Whether a unit is as `unitText` wrote it at some time, changed by hand since, or somebody else's. */
export function authorOf(unit: string): 'llmp' | 'changed' | 'foreign' {
  const [head = '', digest] = HEAD.exec(unit) ?? [];
  if (digest === undefined) return 'foreign';
  return digestOf(unit.slice(head.length)) === digest ? 'llmp' : 'changed';
}
