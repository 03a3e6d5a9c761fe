/**
 * Reads the settings. Each is an environment variable, and also `NAME_FILE` (the path of a file that holds the
 * value) and a systemd credential of the same name in lower case with dashes. What there is stands in declarations.ts.
 */
import { problemsBetween, problemsAround, warningsFor } from './checks.js';
import {
  type AllSettings,
  DECLARED,
  type Live,
  type Reloadable,
  type ReloadableKey,
  SECTIONS,
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
  /** As they were found; nothing for one that is not set and has no default. */
  found: ReadonlyMap<Key, Found>;
  warnings: string[];
}

/** For people: what `config show` and `--print-config` say about a setting. */
export interface DescribedSetting {
  name: string;
  /** As it is written, secrets masked; null when it is not set and has no default, or could not be read. */
  value: string | null;
  /** `environment`, `env file PATH`, `NAME_FILE PATH`, `credential PATH`, `default` or `not set`. */
  origin: string;
  /** As documented: a value, or words where it depends on others; null: none. */
  default: string | null;
  meaning: string;
  /** The heading that it stands under in the documentation. */
  section: string;
  isSecret: boolean;
  isRequired: boolean;
  /** Whether SIGHUP applies it to a running daemon. */
  isReloadable: boolean;
}

export interface Description {
  settings: DescribedSetting[];
  /** Why the daemon would refuse to start; none of a secret's value is in it. */
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
  // Without a problem none is missing.
  return { ...apart(settings as AllSettings), found, warnings: warningsOf(settings, found, sources) };
}

/** Those that a daemon keeps until it ends, and those that SIGHUP changes. */
function apart(all: AllSettings): Pick<Loaded, 'settings' | 'reloadable'> {
  const [fixed, reloadable] = [false, true].map((wanted) =>
    Object.fromEntries(Object.entries(all).filter(([key]) => isReloadable(key as Key) === wanted)),
  );
  return { settings: fixed as Settings, reloadable: reloadable as Reloadable };
}

export const isReloadable = (key: Key): key is ReloadableKey => DECLARED[key].isReloadable;

/**
 * Says of every setting what it is and where it came from, good or not: for `llmp config show` and, by `problems`,
 * `llmp config validate`. Connects to nothing and never throws for what a setting holds; `readEnvFile` may throw before.
 */
export function describeSettings(env: Environment, more: Omit<Sources, 'env'> = {}): Description {
  const sources = { env, ...more };
  const { settings, found, problems } = examine(sources);
  const described = Object.entries(SECTIONS).flatMap(([section, declared]) =>
    (Object.keys(declared) as Key[]).map((key) => describe(section, DECLARED[key], found.get(key))),
  );
  return { settings: described, problems, warnings: warningsOf(settings, found, sources) };
}

/** One `NAME=value  # origin` a line, secrets masked. */
export function asLines(settings: readonly DescribedSetting[]): string {
  return settings.map(({ name, value, origin }) => `${name}=${value ?? ''}  # ${origin}`).join('\n');
}

/** Some settings. A process that reads them in part has none that could be reloaded: it keeps all of them until it ends. */
export interface Part<Wanted extends Key> extends Pick<Loaded, 'found' | 'warnings'> {
  settings: Pick<AllSettings, Wanted>;
}

/**
 * Reads those settings that another process than the daemon runs with, and checks them as the daemon's are.
 *
 * @throws {SettingsError} with all problems of these at once.
 */
export function loadPart<Wanted extends Key>(sources: Sources, keys: readonly Wanted[]): Part<Wanted> {
  const { settings, found, problems } = readEach(keys, sources);
  const all = [...problems, ...problemsBetween(settings), ...problemsAround(sources)];
  if (all.length > 0) throw new SettingsError(all);
  return { settings: settings as Pick<AllSettings, Wanted>, found, warnings: warningsOf(settings, found, sources) };
}

/** A setting by its name, for whoever asks for its value. */
export interface Asked {
  name: string;
  /** Completes the sentence "NAME must be …". */
  accepts: string;
  /** Whether it takes that value. */
  takes: (text: string) => boolean;
  /** Whether there is something in it that must be shown nowhere. */
  isSecret: (text: string) => boolean;
}

/** @returns undefined for a name that is no setting's. */
export function settingNamed(name: string): Asked | undefined {
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

/** The values that must be shown nowhere, as they were written; of a URL the password, decoded as well. */
export function secretsOf({ found }: Pick<Loaded, 'found'>): string[] {
  return [...found].flatMap(([key, { text }]) => {
    const { isSecret, kind }: Setting<unknown> = DECLARED[key];
    return isSecret ? text : (kind.secretsIn?.(text) ?? []);
  });
}

/** The same of settings that may be wrong, as far as they can be read. */
export function secretsAround(env: Environment, more: Omit<Sources, 'env'> = {}): string[] {
  return secretsOf(examine({ env, ...more }));
}

/** A setting's text as it may be shown. */
export function shown(key: Key, found: Found | undefined): string | null {
  return found ? masked(DECLARED[key], found.text) : null;
}

interface Examined {
  /** Those that are good. */
  settings: Partial<AllSettings>;
  found: Map<Key, Found>;
  problems: string[];
}

function examine(sources: Sources): Examined {
  const { settings, found, problems } = readEach(KEYS, sources);
  return { settings, found, problems: [...problems, ...problemsBetween(settings), ...problemsAround(sources)] };
}

function readEach(keys: readonly Key[], sources: Sources): Examined {
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

/** Whether a secret is not set here and may be a credential that this process is not given; nothing can be said of it then. */
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
  const text = fallback.of({ env: sources.env, isReadByPeople: sources.isReadByPeople ?? false, textOf });
  return text === undefined ? undefined : { text, origin: 'default' };
}

function parse({ name, kind, isRequired, isSecret }: Setting<unknown>, text: string): unknown {
  const value = kind.parse(text);
  if (value !== undefined) return value;
  if (isRequired && text.trim() === '') throw new Error(`${name} is required`);
  const given = isSecret ? '' : `, not ${JSON.stringify(withoutCredentials(text))}`;
  throw new Error(`${name} must be ${kind.accepts}${given}`);
}

function warningsOf(settings: Partial<AllSettings>, found: ReadonlyMap<Key, Found>, { env, file }: Sources): string[] {
  const upstream = warningsOfUpstream(found.get('upstreamBaseUrl')?.text ?? '');
  return [...warningsFor(settings), ...upstream, ...unknownNames(env, file, KEYS.map(nameOf))];
}

const nameOf = (key: Key) => DECLARED[key].name;

function describe(section: string, declared: Setting<unknown>, found: Found | undefined): DescribedSetting {
  const { name, meaning, isSecret, isRequired, isReloadable } = declared;
  return {
    name,
    value: found ? masked(declared, found.text) : null,
    origin: found?.origin ?? 'not set',
    default: documentedDefault(declared),
    meaning,
    section,
    isSecret,
    isRequired,
    isReloadable,
  };
}

/** @returns null when it has none. */
export function documentedDefault({ default: fallback }: Setting<unknown>): string | null {
  return typeof fallback === 'object' ? (fallback?.says ?? null) : fallback;
}

const MASK = '********';

function masked({ isSecret }: Setting<unknown>, text: string): string {
  return isSecret ? MASK : withoutCredentials(text);
}

/**
 * A URL in a place that takes no password may have one all the same, and one that takes it may be misspelt: without its slashes, or
 * with the password where the port would be.
 */
const withoutCredentials = (text: string) =>
  text.replace(
    /(?<=:\/\/|^[a-z][a-z0-9+.-]*:\/?)(?!\/).*(?=@)|(?<=\?).*|(?<=:\/\/[^/:@[]*:)(?!\d+(?:\D|$))[^/?]+/gis,
    MASK,
  );
