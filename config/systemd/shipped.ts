/** The files for systemd in the package. `npm run docs` writes them next to this file. */
import { emptyUnlessLoaded, sandbox, START_LIMIT, SUPERVISION } from './sandbox.js';

/** The path of llmp in the package of a distribution. */
export const LLMP = '/usr/bin/llmp';

interface Unit {
  what: string;
  /** The subcommand of llmp. */
  command: string;
  /** The name of its folders below /var/lib, /var/log and /run, and in the journal. */
  name: string;
  envFile: string;
  user: string;
  /** Files with required settings; the last part of the path is the name of the credential. */
  credentials: readonly string[];
  /** Credentials that may be in /etc/credstore, under their name with the prefix `llmp.`. */
  stored: readonly string[];
}

const DAEMON = {
  what: 'llmp, a token-gated reverse proxy for language-model APIs',
  command: 'daemon',
  user: 'llmp',
  credentials: ['/etc/llmp/credentials/management-token'],
  stored: ['encryption-key', 'encryption-key-previous', 'database-url', 'redis-password'],
};

const UNITS: Readonly<Record<string, Unit>> = {
  'llmp.service': { ...DAEMON, name: 'llmp', envFile: '/etc/llmp/llmp.env' },
  'llmp@.service': { ...DAEMON, what: `${DAEMON.what}: %i`, name: 'llmp-%i', envFile: '/etc/llmp/llmp-%i.env' },
  'llmp-dispatcher.service': {
    what: 'llmp event dispatcher',
    command: 'dispatcher',
    name: 'llmp-dispatcher',
    envFile: '/etc/llmp/llmp.env',
    user: 'llmp-dispatcher',
    credentials: [],
    stored: ['dispatcher-api-key', 'redis-password'],
  },
};

const HEAD = '# Written by npm run docs from config/systemd/shipped.ts.';

function unitText({ what, command, name, envFile, user, credentials, stored }: Unit): string {
  const settings = `--env-file ${envFile}`;
  const lastPart = (path: string) => path.slice(path.lastIndexOf('/') + 1);
  return `${HEAD} To change a unit on one machine: systemctl edit UNIT

[Unit]
Description=${what}
Documentation=man:llmp-${command}(8) man:llmp.env(5)
Wants=network-online.target
After=network-online.target postgresql.service mariadb.service mysql.service redis-server.service redis.service
${START_LIMIT}
[Service]
ExecStart=${LLMP} ${command} ${settings}
# Invalid settings make the reload fail before the process is notified.
ExecReload=${LLMP} ${command} --check ${settings}
ExecReload=/bin/kill -HUP $MAINPID
${SUPERVISION}MemoryHigh=1G
SyslogIdentifier=${name}

User=${user}
Group=llmp
${credentials.map((path) => `LoadCredential=${lastPart(path)}:${path}\n${emptyUnlessLoaded(lastPart(path))}`).join('')}# From /etc/credstore and similar folders, if they exist.
${stored.map((credential) => `LoadCredential=${credential}:llmp.${credential}\n`).join('')}StateDirectory=${name}
StateDirectoryMode=0700
LogsDirectory=${name}
LogsDirectoryMode=0750
RuntimeDirectory=${name}
RuntimeDirectoryMode=0750

${sandbox()}
[Install]
WantedBy=multi-user.target
`;
}

/** The dispatcher has its own user, which cannot read the data of the daemon. As a member of the group it can read the settings. */
const SYSUSERS = `${HEAD} Install it as /etc/sysusers.d/llmp.conf
u llmp - "llmp" /var/lib/llmp
u llmp-dispatcher - "llmp event dispatcher" /var/lib/llmp-dispatcher
m llmp-dispatcher llmp
`;

/** Only root can read the credentials: systemd reads them for the unit. */
const TMPFILES = `${HEAD} Install it as /etc/tmpfiles.d/llmp.conf
d /etc/llmp 0750 root llmp -
z /etc/llmp/*.env 0640 root llmp -
d /etc/llmp/credentials 0700 root root -
z /etc/llmp/credentials/* 0600 root root -
`;

/** The texts of the files in config/systemd, by file name. */
export function shippedFiles(): ReadonlyMap<string, string> {
  return new Map([
    ...Object.entries(UNITS).map(([name, unit]) => [name, unitText(unit)] as const),
    ['llmp.sysusers', SYSUSERS],
    ['llmp.tmpfiles', TMPFILES],
  ]);
}
