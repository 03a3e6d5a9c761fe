/** Plans the systemd unit of `llmp init`. */
import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { databaseAddress } from '../../config/database-url.js';
import { listenAddress } from '../../config/kinds.js';
import { authorOf, LOGS_FOLDER, STATE_FOLDER, unitText } from '../../config/systemd/unit.js';
import { usage } from '../../console/failure.js';
import { existingAt, foreign, type PlannedChange, type FileWrite } from './files.js';

interface UnitRequest {
  dir: string;
  envFile: string;
  /** Absolute paths of node and of llmp's script. */
  command: readonly [node: string, script: string];
  /** Files that contain the values of settings, by the name of the setting. */
  files: ReadonlyMap<string, string>;
  /** The value of a setting as the daemon would read it. */
  textOf: (name: string) => string | undefined;
}

interface PlannedUnit {
  path: string;
  planned: PlannedChange | null;
  write: FileWrite | null;
  warning: string | null;
}

/** The mode that systemd expects. The unit contains no secrets, and its folder is accessible to its owner only. */
const UNIT_MODE = 0o644;

/** @throws {Failure} if llmp did not write the existing unit, or the unit could not run with the settings. */
export function planUnit({ dir, envFile, command, files, textOf }: UnitRequest): PlannedUnit {
  refuseUnwritablePaths(textOf);
  const path = join(dir, 'llmp.service');
  const text = unitText({ command, envFile, files, needsLowPort: needsLowPort(textOf) });
  const existing = existingAt(path);
  const nothing = { path, planned: null, write: null, warning: null };
  if (existing?.text === text) return nothing;
  const author = existing ? authorOf(existing.text) : 'llmp';
  if (author === 'foreign') throw foreign(path, 'it was not written by llmp init (use --no-systemd to keep it)');
  if (author === 'changed') return { ...nothing, warning: `${path} was edited by hand and is not changed` };
  const what = 'systemd unit; runs as a dynamic user (DynamicUser=yes)';
  const planned = { action: existing ? ('change' as const) : ('create' as const), path, what };
  return { ...nothing, planned, write: { path, text, mode: UNIT_MODE }, warning: unreadableWarning(command) };
}

/**
 * The dynamic user of the unit reads what all users can read, and has its own /tmp.
 *
 * @returns a warning if it cannot read llmp or Node.js.
 */
function unreadableWarning(command: UnitRequest['command']): string | null {
  const unreadable = command.find((path) => /^\/(?:var\/)?tmp\//.test(path) || !parentsOf(path).every(isOpenToAll));
  if (unreadable === undefined) return null;
  return `the service cannot read ${unreadable}: install it in a folder that all users can read, such as /opt`;
}

function parentsOf(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [] : [parent, ...parentsOf(parent)];
}

const isOpenToAll = (folder: string) => ((statSync(folder, { throwIfNoEntry: false })?.mode ?? 0o001) & 0o001) !== 0;

function needsLowPort(textOf: UnitRequest['textOf']): boolean {
  return ['LISTEN_ADDR', 'MANAGEMENT_LISTEN_ADDR'].some((name) => {
    const address = listenAddress.parse(textOf(name) ?? '');
    return address !== undefined && 'port' in address && address.port > 0 && address.port < 1024;
  });
}

/** The unit's user can write only to the unit's state and log folders. */
function refuseUnwritablePaths(textOf: UnitRequest['textOf']): void {
  const database = databaseAddress.parse(textOf('DATABASE_URL') ?? '');
  for (const [name, path, example] of [
    ['DATABASE_URL', database?.driver === 'sqlite' ? database.path : '', `sqlite:${STATE_FOLDER}/llmp.db`],
    ['AUDIT_LOG_FILE', textOf('AUDIT_LOG_FILE') ?? '', `${LOGS_FOLDER}/audit.log`],
  ] as const) {
    if (path === '' || [STATE_FOLDER, LOGS_FOLDER].some((folder) => path.startsWith(`${folder}/`))) continue;
    throw usage(`the systemd unit cannot write to ${path}`, {
      advice: `Use --set ${name}=${example}, or --no-systemd`,
    });
  }
}
