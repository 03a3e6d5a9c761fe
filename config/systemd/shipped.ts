/** What comes with the package for systemd: `npm run docs` writes it beside this file. */
import { emptyUnlessLoaded, sandbox, START_LIMIT, SUPERVISION } from './sandbox.js';

/** Where a package of a distribution has it. */
export const LLMP = '/usr/bin/llmp';

interface Unit {
  what: string;
  /** Behind `llmp`. */
  command: string;
  /** Of its folders below /var/lib, /var/log and /run, and in the journal. */
  name: string;
  envFile: string;
  user: string;
  /** Files with settings that it needs; the last part is the credential's name. */
  credentials: readonly string[];
  /** Those that may be in /etc/credstore, with `llmp.` in front of the name. */
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
    what: 'llmp, dispatcher of events',
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
  return `${HEAD} What one machine wants otherwise: systemctl edit UNIT

[Unit]
Description=${what}
Documentation=man:llmp-${command}(8) man:llmp.env(5)
Wants=network-online.target
After=network-online.target postgresql.service mariadb.service mysql.service redis-server.service redis.service
${START_LIMIT}
[Service]
ExecStart=${LLMP} ${command} ${settings}
# What is wrong with the settings makes the reload fail, before the process hears of it.
ExecReload=${LLMP} ${command} --check ${settings}
ExecReload=/bin/kill -HUP $MAINPID
${SUPERVISION}MemoryHigh=1G
SyslogIdentifier=${name}

User=${user}
Group=llmp
${credentials.map((path) => `LoadCredential=${lastPart(path)}:${path}\n${emptyUnlessLoaded(lastPart(path))}`).join('')}# From /etc/credstore and the like, as far as they are there.
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

/** The dispatcher is a user of its own: what the daemon keeps is none of its business. In the group it may read the settings. */
const SYSUSERS = `${HEAD} To be installed as /usr/lib/sysusers.d/llmp.conf
u llmp - "llmp" /var/lib/llmp
u llmp-dispatcher - "llmp, dispatcher of events" /var/lib/llmp-dispatcher
m llmp-dispatcher llmp
`;

/** Credentials are read by systemd, which is root. */
const TMPFILES = `${HEAD} To be installed as /usr/lib/tmpfiles.d/llmp.conf
d /etc/llmp 0750 root llmp -
z /etc/llmp/*.env 0640 root llmp -
d /etc/llmp/credentials 0700 root root -
z /etc/llmp/credentials/* 0600 root root -
`;

/** Texts by the name of the file in config/systemd. */
export function shippedFiles(): ReadonlyMap<string, string> {
  return new Map([
    ...Object.entries(UNITS).map(([name, unit]) => [name, unitText(unit)] as const),
    ['llmp.sysusers', SYSUSERS],
    ['llmp.tmpfiles', TMPFILES],
  ]);
}
