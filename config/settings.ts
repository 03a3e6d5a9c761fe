/**
 * Reads the settings. A setting is an environment variable `NAME`, or `NAME_FILE` with the path of a file that contains the value, or a
 * systemd credential with the name in lower case and dashes. The settings are declared in declarations.ts.
 */
import { combinationProblems, processProblems, warningsFor } from './checks.js';
import {
  type AllSettings,
  DECLARED,
  type Live,
  type Reloadable,
  type ReloadableKey,
  type Setting,
  type Settings,
} from './declarations.js';
import { unknownNames } from './names.js';
import { warningsOfUpstream } from './urls.js';
import { type Environment, findGiven, type Found, SettingsError, type Sources } from './sources.js';

export { type AllSettings, type Environment, type Live, type Reloadable, type Settings, SettingsError };

type Key = keyof AllSettings;

const KEYS = Object.keys(DECLARED) as Key[];
const BY_NAME = new Map<string, Setting<unknown>>(KEYS.map((key) => [DECLARED[key].name, DECLARED[key]]));

export interface Loaded {
  settings: Settings;
  reloadable: Reloadable;
  /** The texts of settings and their sources, without settings that are not set and have no default. */
  found: ReadonlyMap<Key, Found>;
  warnings: string[];
}

/** A setting as `config show` and `--print-config` describe it. */
export interface DescribedSetting {
  name: string;
  /** The text with secrets masked; null if it is not set and has no default, or could not be read. */
  value: string | null;
  /** `environment`, `env file PATH`, `NAME_FILE PATH`, `credential PATH`, `default` or `not set`. */
  origin: string;
  isSecret: boolean;
}

export interface Description {
  settings: DescribedSetting[];
  /** Reasons why the daemon would not start. They contain no secrets. */
  problems: string[];
  warnings: string[];
}

/**
 * Reads all settings.
 *
 * @throws {SettingsError} with all problems at once.
 */
export function loadSettings(env: Environment, more: Omit<Sources, 'env'> = {}): Loaded {
  const sources = { env, ...more };
  const { settings, found, problems } = examine(sources);
  if (problems.length > 0) throw new SettingsError(problems);
  // If there are no problems, no setting is missing.
  return { ...splitByReloadable(settings as AllSettings), found, warnings: warningsOf(settings, found, sources) };
}

/** Separates the settings that are fixed at startup from those that SIGHUP can change. */
function splitByReloadable(all: AllSettings): Pick<Loaded, 'settings' | 'reloadable'> {
  const [fixed, reloadable] = [false, true].map((wanted) =>
    Object.fromEntries(Object.entries(all).filter(([key]) => isReloadable(key as Key) === wanted)),
  );
  return { settings: fixed as Settings, reloadable: reloadable as Reloadable };
}

export const isReloadable = (key: Key): key is ReloadableKey => DECLARED[key].isReloadable;

/**
 * Describes all settings with their sources, valid or not, for `llmp config show` and, with `problems`, for `llmp config validate`.
 * It connects to nothing, and does not throw for invalid values; only `readEnvFile`, which is called before, may throw.
 */
export function describeSettings(env: Environment, more: Omit<Sources, 'env'> = {}): Description {
  const sources = { env, ...more };
  const { settings, found, problems } = examine(sources);
  const described = KEYS.map((key): DescribedSetting => {
    const { name, isSecret } = DECLARED[key];
    return { name, value: maskedText(key, found.get(key)), origin: found.get(key)?.origin ?? 'not set', isSecret };
  });
  return { settings: described, problems, warnings: warningsOf(settings, found, sources) };
}

/** The settings as lines `NAME=value  # origin`, with secrets masked. */
export function asLines(settings: readonly DescribedSetting[]): string {
  return settings.map(({ name, value, origin }) => `${name}=${value ?? ''}  # ${origin}`).join('\n');
}

/** A selection of settings, for another process than the daemon. None of them can be reloaded. */
export interface Part<Wanted extends Key> extends Pick<Loaded, 'found' | 'warnings'> {
  settings: Pick<AllSettings, Wanted>;
}

/**
 * Reads and checks the settings `keys`, for another process than the daemon.
 *
 * @throws {SettingsError} with all problems of these settings.
 */
export function loadPart<Wanted extends Key>(sources: Sources, keys: readonly Wanted[]): Part<Wanted> {
  const { settings, found, problems } = readEach(keys, sources);
  const all = [...problems, ...combinationProblems(settings), ...processProblems(sources)];
  if (all.length > 0) throw new SettingsError(all);
  return { settings: settings as Pick<AllSettings, Wanted>, found, warnings: warningsOf(settings, found, sources) };
}

/** A setting by its name, for code that validates a new value for it. */
export interface NamedSetting {
  name: string;
  /** Completes the sentence "NAME must be …". */
  accepts: string;
  /** Whether a value is valid. */
  takes: (text: string) => boolean;
  /** Whether a value contains a secret. */
  isSecret: (text: string) => boolean;
}

/** @returns undefined if there is no setting with this name. */
export function settingNamed(name: string): NamedSetting | undefined {
  const declared = BY_NAME.get(name);
  if (!declared) return undefined;
  const { kind, isSecret } = declared;
  return {
    name,
    accepts: kind.accepts,
    takes: (text) => kind.parse(text) !== undefined,
    isSecret: (text) => isSecret || (kind.secretsIn?.(text).length ?? 0) > 0,
  };
}

/** All secret values as written, and passwords in URLs also decoded, so that the log can mask them. */
export function secretsOf({ found }: Pick<Loaded, 'found'>): string[] {
  return [...found].flatMap(([key, { text }]) => {
    const { isSecret, kind }: Setting<unknown> = DECLARED[key];
    return isSecret ? text : (kind.secretsIn?.(text) ?? []);
  });
}

/**
 * An environment without secrets of llmp: for a program that llmp starts and that has nothing to do with its settings. Left out are secret
 * settings, the paths of files with secrets, and URLs with a password.
 */
export function withoutSecrets(env: Environment): Record<string, string | undefined> {
  const isLeftOut = ([name, text = '']: [string, string | undefined]) => {
    const byFile = BY_NAME.has(name) ? undefined : BY_NAME.get(name.replace(/_FILE$/, ''));
    if (byFile) return byFile.isSecret || byFile.kind.secretsIn !== undefined;
    return name === 'CREDENTIALS_DIRECTORY' || settingNamed(name)?.isSecret(text) === true;
  };
  return Object.fromEntries(Object.entries(env).filter((each) => !isLeftOut(each)));
}

/** The texts of all settings by name, from which `loadSettings` makes the same settings in another process. */
export const textsOf = ({ found }: Pick<Loaded, 'found'>): Record<string, string> =>
  Object.fromEntries([...found].map(([key, { text }]) => [DECLARED[key].name, text]));

/** The secrets of settings that may be invalid, as far as they can be read. */
export function secretsIn(env: Environment, more: Omit<Sources, 'env'> = {}): string[] {
  return secretsOf(examine({ env, ...more }));
}

/** The text of a setting with secrets masked. */
export function maskedText(key: Key, found: Found | undefined): string | null {
  if (!found) return null;
  return DECLARED[key].isSecret ? MASK : withoutCredentials(found.text);
}

interface ReadResult {
  /** The valid settings. */
  settings: Partial<AllSettings>;
  found: Map<Key, Found>;
  problems: string[];
}

function examine(sources: Sources): ReadResult {
  const { settings, found, problems } = readEach(KEYS, sources);
  return { settings, found, problems: [...problems, ...combinationProblems(settings), ...processProblems(sources)] };
}

function readEach(keys: readonly Key[], sources: Sources): ReadResult {
  const settings: Record<string, unknown> = {};
  const found = new Map<Key, Found>();
  const problems = new Set<string>();
  for (const key of keys) {
    try {
      if (mayBeWithheld(DECLARED[key], sources)) continue;
      const it = find(DECLARED[key], sources);
      if (it) found.set(key, it);
      settings[key] = it && parse(DECLARED[key], it.text);
    } catch (error) {
      problems.add(error instanceof Error ? error.message : String(error));
    }
  }
  return { settings, found, problems: [...problems] };
}

/** Whether a secret is not set here but may be a credential that systemd withholds from this process. It cannot be checked then. */
function mayBeWithheld({ name, isSecret, kind }: Setting<unknown>, sources: Sources): boolean {
  const mayBeCredential = isSecret || kind.secretsIn !== undefined;
  return mayBeCredential && sources.areCredentialsWithheld === true && findGiven(name, sources) === undefined;
}

function find(declared: Setting<unknown>, sources: Sources): Found | undefined {
  const given = findGiven(declared.name, sources);
  if (given) return given;
  if (declared.isRequired) throw new Error(`${declared.name} is required`);
  const { default: fallback } = declared;
  if (fallback === null) return undefined;
  if (typeof fallback === 'string') return { text: fallback, origin: 'default' };
  const textOf = (name: string) => {
    const other = BY_NAME.get(name);
    return other && find(other, sources)?.text;
  };
  const text = fallback.resolve({ env: sources.env, isReadByPeople: sources.isReadByPeople ?? false, textOf });
  return text === undefined ? undefined : { text, origin: 'default' };
}

function parse({ name, kind, isRequired, isSecret }: Setting<unknown>, text: string): unknown {
  const value = kind.parse(text);
  if (value !== undefined) return value;
  if (isRequired && text.trim() === '') throw new Error(`${name} is required`);
  const given = isSecret ? '' : `, not ${JSON.stringify(withoutCredentials(text))}`;
  const problem = kind.problemIn?.(text);
  throw new Error(`${name}${problem === undefined ? '' : `: ${problem}. It`} must be ${kind.accepts}${given}`);
}

function warningsOf(settings: Partial<AllSettings>, found: ReadonlyMap<Key, Found>, sources: Sources): string[] {
  const { env, file } = sources;
  const upstream = warningsOfUpstream(found.get('upstreamBaseUrl')?.text ?? '');
  return [
    ...warningsFor(settings, sources),
    ...upstream,
    ...unknownNames(env, file, KEYS.map(nameOf)),
    ...(file?.warnings ?? []),
  ];
}

const nameOf = (key: Key) => DECLARED[key].name;

/** @returns null if there is no default. */
export function documentedDefault({ default: fallback }: Setting<unknown>): string | null {
  return typeof fallback === 'object' ? (fallback?.documented ?? null) : fallback;
}

const MASK = '********';

/**
 * Masks credentials in URLs. An invalid URL may contain them as well: where no password is allowed, without slashes, or with the password
 * in place of the port.
 */
const withoutCredentials = (text: string) =>
  text.replace(
    /(?<=:\/\/|^[a-z][a-z0-9+.-]*:\/?)(?!\/).*(?=@)|(?<=\?).*|(?<=:\/\/[^/:@[]*:)(?!\d+(?:\D|$))[^/?]+/gis,
    MASK,
  );
