/** Doctor checks of the settings: whether they are valid, where they come from, and who can read their files. */
import { stat } from 'node:fs/promises';
import { type DescribedSetting, describeSettings } from '../../config/settings.js';
import {
  type DoctorContext,
  codeOf,
  failed,
  type CheckGroup,
  type Finding,
  ok,
  skipped,
  sourcesOf,
  warning,
} from './doctor-finding.js';

/** @param unread why the env file could not be read; empty if it was. */
export function settingsChecks(context: DoctorContext, unread: readonly string[]): CheckGroup {
  return { check: 'settings', run: () => settings(context, unread) };
}

// eslint-disable-next-line @typescript-eslint/require-await -- has the type of the other checks
async function* settings(context: DoctorContext, unread: readonly string[]): AsyncGenerator<Finding> {
  const { env, ...more } = sourcesOf(context);
  const described = describeSettings(env, more);
  const advice = `llmp config validate${context.envFileOption}`;
  // If the env file cannot be read, all of its settings would be reported as missing.
  const problems = unread.length > 0 ? unread : described.problems;
  for (const problem of problems) yield failed('settings', problem, advice);
  for (const each of described.warnings)
    yield warning('settings', each, `llmp config show --origin${context.envFileOption}`);
  // Without an env file these may not be the settings of the running daemon.
  const where =
    context.envFileOption === '' ? '; a daemon that was started with other settings is not checked (--env-file)' : '';
  if (problems.length === 0) yield ok('settings', `${originsOf(described.settings)}${where}`);
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

export function fileChecks(context: DoctorContext): CheckGroup {
  return { check: 'files', run: () => files(context) };
}

const MASK = '********';

interface SecretFile {
  path: string;
  what: string;
  holdsSecrets: boolean;
}

async function* files(context: DoctorContext): AsyncGenerator<Finding> {
  const all = filesOf(context);
  if (all.length === 0) yield skipped('files', 'no setting comes from a file');
  for (const { path, what, holdsSecrets } of all) {
    try {
      yield modeFinding(path, what, holdsSecrets, (await stat(path)).mode);
    } catch (error) {
      yield failed(
        'files',
        `cannot read ${what} ${path}: ${codeOf(error)}`,
        `Check path and permissions: ls -l ${path}`,
      );
    }
  }
}

/** The env file, and the files that settings are read from. The check `database` covers the files of the database. */
function filesOf(context: DoctorContext): SecretFile[] {
  const { env, ...more } = sourcesOf(context);
  const { settings } = describeSettings(env, more);
  const named = settings.flatMap(({ name, origin, isSecret, value }): SecretFile[] => {
    const path = /^(?:\w+_FILE|credential) (.+)$/.exec(origin)?.[1];
    return path === undefined ? [] : [{ path, what: name, holdsSecrets: isSecret || isMasked(value) }];
  });
  if (!context.file) return named;
  const { path } = context.file;
  const holdsSecrets = settings.some(
    ({ origin, isSecret, value }) => origin === `env file ${path}` && (isSecret || isMasked(value)),
  );
  return [{ path, what: 'the env file', holdsSecrets }, ...named];
}

const isMasked = (value: string | null) => value?.includes(MASK) ?? false;

/** @param holdsSecrets whether other users must not read the file. They must never be able to write it. */
export function modeFinding(path: string, what: string, holdsSecrets: boolean, mode: number, check = 'files'): Finding {
  const shown = `${what} ${path} has mode ${(mode & 0o777).toString(8).padStart(4, '0')}`;
  const advice = `chmod 600 ${path}`;
  if (mode & 0o022) return failed(check, `${shown}: other users can write it`, advice);
  if (holdsSecrets && mode & 0o007) return failed(check, `${shown}: every user of this machine can read it`, advice);
  return ok(check, shown);
}
