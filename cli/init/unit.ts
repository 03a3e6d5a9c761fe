/** The unit of systemd in the plan of `llmp init`. */
import { join } from 'node:path';
import { databaseAddress } from '../../config/database-url.js';
import { listenAddress } from '../../config/kinds.js';
import { authorOf, LOGS_FOLDER, STATE_FOLDER, unitText } from '../../config/systemd/unit.js';
import { usage } from '../../console/failure.js';
import { existingAt, foreign, type Planned, type Write } from './files.js';

interface UnitWanted {
  dir: string;
  envFile: string;
  /** Absolute paths of node and of llmp's script. */
  command: readonly [node: string, script: string];
  /** Those that settings are read from, by the name of the setting. */
  files: ReadonlyMap<string, string>;
  /** A setting as the daemon would find it. */
  textOf: (name: string) => string | undefined;
}

interface PlannedUnit {
  path: string;
  planned: Planned | null;
  write: Write | null;
  warning: string | null;
}

/** Systemd asks for it; there is no secret in it, and the folder is for its owner alone. */
const UNIT_MODE = 0o644;

/** @throws {Failure} for one that somebody else wrote, and for settings that no such unit could run with. */
export function planUnit({ dir, envFile, command, files, textOf }: UnitWanted): PlannedUnit {
  refuseOutside(textOf);
  const path = join(dir, 'llmp.service');
  const text = unitText({ command, envFile, files, needsLowPort: needsLowPort(textOf) });
  const existing = existingAt(path);
  const nothing = { path, planned: null, write: null, warning: null };
  if (existing?.text === text) return nothing;
  const author = existing ? authorOf(existing.text) : 'llmp';
  if (author === 'foreign') throw foreign(path, 'it was not written by llmp init (--no-systemd leaves it alone)');
  if (author === 'changed') return { ...nothing, warning: `${path} was changed by hand, and stays as it is` };
  const what = 'the unit, as a user of its own that systemd makes up';
  const planned = { action: existing ? ('change' as const) : ('create' as const), path, what };
  return { ...nothing, planned, write: { path, text, mode: UNIT_MODE } };
}

function needsLowPort(textOf: UnitWanted['textOf']): boolean {
  return ['LISTEN_ADDR', 'MANAGEMENT_LISTEN_ADDR'].some((name) => {
    const address = listenAddress.parse(textOf(name) ?? '');
    return address !== undefined && 'port' in address && address.port > 0 && address.port < 1024;
  });
}

/** The unit's user can write nowhere else. */
function refuseOutside(textOf: UnitWanted['textOf']): void {
  const database = databaseAddress.parse(textOf('DATABASE_URL') ?? '');
  for (const [name, path, example] of [
    ['DATABASE_URL', database?.driver === 'sqlite' ? database.path : '', `sqlite:${STATE_FOLDER}/llmp.db`],
    ['AUDIT_LOG_FILE', textOf('AUDIT_LOG_FILE') ?? '', `${LOGS_FOLDER}/audit.log`],
  ] as const) {
    if (path === '' || [STATE_FOLDER, LOGS_FOLDER].some((folder) => path.startsWith(`${folder}/`))) continue;
    throw usage(`the unit of systemd could not write ${path}`, {
      advice: `--no-systemd, or --set ${name}=${example}`,
    });
  }
}
