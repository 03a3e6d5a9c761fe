/** Data folders of new database servers: made once on a machine, and copied for each server. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

export type ServerKind = 'postgres' | 'mysql';

const isRoot = process.getuid?.() === 0;

// One for each user, because a user cannot write to the folder of another.
const ROOT = join(tmpdir(), `llmp-test-servers-${process.getuid?.() ?? ''}`);
const TEMPLATES = join(ROOT, 'templates');

// Debian installs PostgreSQL's server outside of any PATH, and the programs that find it there, such as pg_ctlcluster, in the PATH.
const POSTGRES_BIN = postgresBin();

/** Null without PostgreSQL; empty if its programs are in the PATH. */
function postgresBin(): string | null {
  const root = '/usr/lib/postgresql';
  const isDebian = (process.env.PATH ?? '').split(delimiter).some((path) => existsSync(join(path, 'pg_ctlcluster')));
  const versions = isDebian && existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : [];
  const bin = versions.map((version) => join(root, version, 'bin')).find((path) => existsSync(join(path, 'initdb')));
  return bin ?? (spawnSync('initdb', ['--version']).error ? null : '');
}

export const isInstalled = (kind: ServerKind): boolean =>
  kind === 'postgres' ? POSTGRES_BIN !== null : !spawnSync('mariadbd', ['--version']).error;

/** The path of a program of PostgreSQL. */
export const postgresTool = (name: string): string => (POSTGRES_BIN ? join(POSTGRES_BIN, name) : name);

/** Neither server runs as root. */
export const userOf = (kind: ServerKind): string => (kind === 'postgres' ? 'postgres' : 'mysql');

/** Small, so that copying is fast. */
export const MYSQL_FILES = ['--innodb-log-file-size=4M', '--innodb-data-file-path=ibdata1:4M:autoextend'] as const;

/** The command that makes the data folder `data`. */
function initCommand(kind: ServerKind, data: string): [string, ...string[]] {
  return kind === 'postgres'
    ? [
        postgresTool('initdb'),
        ...['-D', data, '-U', 'llmp', '-A', 'trust', '-E', 'UTF8', '--wal-segsize=1', '--no-sync'],
      ]
    : [
        'mariadb-install-db',
        '--no-defaults',
        `--datadir=${data}`,
        '--auth-root-authentication-method=normal',
        '--skip-test-db',
        ...MYSQL_FILES,
      ];
}

/** A new folder for a server, with its data in `data`. It belongs to the user that the server runs as. */
export function newServerFolder(kind: ServerKind): string {
  const template = templateOf(kind);
  removeLeftOvers();
  // Later processes can tell by the ID of this process whether the folder is in use.
  const dir = mkdtempSync(join(ROOT, `${process.pid}-`));
  if (isRoot) orFail(spawnSync('chown', [userOf(kind), dir]));
  orFail(spawnSync('cp', ['-a', '--reflink=auto', template, join(dir, 'data')]));
  return dir;
}

/** @returns the path of a data folder on which no server may run. It is made if it does not exist. */
function templateOf(kind: ServerKind): string {
  // A folder of another version, or with other settings, cannot be used.
  const version = spawnSync(kind === 'postgres' ? postgresTool('postgres') : 'mariadbd', ['--version']).stdout;
  const locale = `${process.env.LC_ALL} ${process.env.LANG}`;
  const madeBy = [String(version), initCommand(kind, 'data').join(' '), locale].join('\n');
  const template = join(TEMPLATES, `${kind}-${createHash('sha256').update(madeBy).digest('hex').slice(0, 12)}`);
  if (existsSync(template)) return template;
  mkdirSync(TEMPLATES, { recursive: true });
  const making = join(TEMPLATES, `${kind}-making`);
  const init = asUser(kind, initCommand(kind, join(making, 'data')));
  // Other test processes wait here for the first one, which renames the folder when it is complete.
  const script = `
    test -d "$1" && exit
    rm -rf "$2" && mkdir "$2" && chown "$3" "$2" || exit
    template=$1 making=$2
    shift 3
    setpriv "$@" && mv "$making/data" "$template" && rm -r "$making"`;
  const owner = isRoot ? userOf(kind) : String(process.getuid?.());
  const args = [`${TEMPLATES}/${kind}.lock`, 'sh', '-c', script, 'sh', template, making, owner, ...init];
  orFail(spawnSync('flock', args, { encoding: 'utf8' }));
  return template;
}

/** Options of `setpriv` that run a command as the user of the server. If this process is killed, the command ends with it. */
export function asUser(kind: ServerKind, command: readonly string[]): string[] {
  const user = isRoot ? ['--reuid', userOf(kind), '--regid', userOf(kind), '--clear-groups'] : [];
  return ['--pdeathsig', 'KILL', ...user, ...command];
}

/** Removes the folders of test processes that were killed. */
function removeLeftOvers(): void {
  for (const name of readdirSync(ROOT)) {
    const pid = /^(\d+)-/.exec(name)?.[1];
    if (pid !== undefined && !isAlive(pid)) rmSync(join(ROOT, name), { recursive: true, force: true });
  }
}

function isAlive(pid: string): boolean {
  try {
    readFileSync(`/proc/${pid}/stat`);
    return true;
  } catch {
    return false;
  }
}

function orFail({ status, stderr, error }: SpawnSyncReturns<string | Buffer>): void {
  if (status !== 0) throw error ?? new Error(`no database server can be started: ${String(stderr)}`);
}
