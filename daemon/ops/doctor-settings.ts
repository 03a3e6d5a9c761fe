/** Whether the settings are good, where they come from, and who else may read them. */
import { stat } from 'node:fs/promises';
import { type DescribedSetting, describeSettings } from '../../config/settings.js';
import {
  type Around,
  codeOf,
  failed,
  type Family,
  type Finding,
  ok,
  skipped,
  sourcesOf,
  warning,
} from './doctor-finding.js';

/** @param unread why the env file could not be read. */
export function settingsFamily(around: Around, unread: readonly string[]): Family {
  return { check: 'settings', look: () => settings(around, unread) };
}

// eslint-disable-next-line @typescript-eslint/require-await -- as the others are
async function* settings(around: Around, unread: readonly string[]): AsyncGenerator<Finding> {
  const { env, ...more } = sourcesOf(around);
  const described = describeSettings(env, more);
  const advice = `llmp config validate${around.withFile}`;
  // Without the file everything that it holds would be said to be missing.
  const problems = unread.length > 0 ? unread : described.problems;
  for (const problem of problems) yield failed('settings', problem, advice);
  for (const each of described.warnings) yield warning('settings', each, `llmp config show --origin${around.withFile}`);
  if (problems.length === 0) yield ok('settings', originsOf(described.settings));
}

/** `3 from env file /etc/llmp/llmp.env, 1 from environment, 60 by default`. */
function originsOf(settings: readonly DescribedSetting[]): string {
  const counts = new Map<string, number>();
  for (const { origin } of settings) {
    const from = origin === 'default' || origin === 'not set' ? 'by default' : `from ${origin}`;
    counts.set(from, (counts.get(from) ?? 0) + 1);
  }
  return [...counts].map(([from, count]) => `${count} ${from}`).join(', ');
}

export function filesFamily(around: Around): Family {
  return { check: 'files', look: () => files(around) };
}

const MASK = '********';

interface SecretFile {
  path: string;
  what: string;
  holdsSecrets: boolean;
}

async function* files(around: Around): AsyncGenerator<Finding> {
  const all = filesOf(around);
  if (all.length === 0) yield skipped('files', 'no setting comes from a file');
  for (const { path, what, holdsSecrets } of all) {
    try {
      yield modeFinding(path, what, holdsSecrets, (await stat(path)).mode);
    } catch (error) {
      yield failed('files', `${what} ${path}: ${codeOf(error)}`, `ls -l ${path}`);
    }
  }
}

/** The env file, and those that it or the environment names for a setting; a database's are looked at with it. */
function filesOf(around: Around): SecretFile[] {
  const { env, ...more } = sourcesOf(around);
  const { settings } = describeSettings(env, more);
  const named = settings.flatMap(({ name, origin, isSecret, value }): SecretFile[] => {
    const path = /^(?:\w+_FILE|credential) (.+)$/.exec(origin)?.[1];
    return path === undefined ? [] : [{ path, what: name, holdsSecrets: isSecret || isMasked(value) }];
  });
  if (!around.file) return named;
  const { path } = around.file;
  const holdsSecrets = settings.some(
    ({ origin, isSecret, value }) => origin === `env file ${path}` && (isSecret || isMasked(value)),
  );
  return [{ path, what: 'the env file', holdsSecrets }, ...named];
}

const isMasked = (value: string | null) => value?.includes(MASK) ?? false;

/** @param holdsSecrets whether it matters who reads it; nobody else is to write it in any case. */
export function modeFinding(path: string, what: string, holdsSecrets: boolean, mode: number, check = 'files'): Finding {
  const shown = `${what} ${path} has mode ${(mode & 0o777).toString(8).padStart(4, '0')}`;
  const advice = `chmod 600 ${path}`;
  if (mode & 0o022) return failed(check, `${shown}: others can write it`, advice);
  if (holdsSecrets && mode & 0o007) return failed(check, `${shown}: everybody on this machine can read it`, advice);
  return ok(check, shown);
}
