/** The sources of settings: the environment, the env file, files named by either, and systemd credentials. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readEnvLine } from './env-lines.js';
import { readTextFile, whyUnreadable } from './text-file.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** All problems of the configuration, one line each, without secrets. */
export class SettingsError extends Error {
  readonly problems: readonly string[];
  override name = 'SettingsError';
  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

export interface EnvFile {
  path: string;
  values: Environment;
  /** Values that are probably mistakes, without the values. */
  warnings?: readonly string[];
}

/** The sources to read settings from. The environment takes precedence over the file. */
export interface Sources {
  env: Environment;
  file?: EnvFile | undefined;
  /** Whether the log goes to a terminal or the journal, where people read it. It determines the default of LOG_FORMAT. */
  isReadByPeople?: boolean;
  /** The options of node that the process was started with. */
  execArgv?: readonly string[];
  /** Whether systemd withholds the unit's credentials from this process. A secret that is not set may be one of them. */
  areCredentialsWithheld?: boolean;
}

/** The text of a setting before parsing, and its source. */
export interface Found {
  text: string;
  /** `environment`, `env file PATH`, `NAME_FILE PATH`, `credential PATH` or `default`. */
  origin: string;
}

/**
 * Reads a file of `NAME=value` lines.
 *
 * @throws {SettingsError} if it cannot be read, or with a problem for each invalid line.
 */
export function readEnvFile(path: string): EnvFile {
  let text: string;
  try {
    text = readTextFile(path);
  } catch (error) {
    throw new SettingsError([`--env-file: cannot read ${path}: ${whyUnreadable(error)}`]);
  }
  const values: Record<string, string> = {};
  const problems: string[] = [];
  const warnings: string[] = [];
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const read = readEnvLine(line);
    if (typeof read === 'string') problems.push(`--env-file: ${path}, line ${index + 1}: ${read}`);
    else if (read) {
      values[read.name] = read.value;
      if (read.mayIncludeComment)
        warnings.push(
          `${path}, line ${index + 1}: the value of ${read.name} includes all that follows #; a comment needs its own line`,
        );
    }
  }
  if (problems.length > 0) throw new SettingsError(problems);
  return { path, values, warnings };
}

/** @returns the given text of a setting, undefined if it is not set. @throws {Error} if it cannot be read, or is set twice. */
export function findGiven(name: string, { env, file, areCredentialsWithheld }: Sources): Found | undefined {
  const layers = [{ values: env, origin: 'environment' }];
  if (file) layers.push({ values: file.values, origin: `env file ${file.path}` });
  for (const { values, origin } of layers) {
    const direct = values[name];
    const path = values[`${name}_FILE`];
    if (direct !== undefined && path !== undefined) throw new Error(`${name} and ${name}_FILE are both set; keep one`);
    if (direct !== undefined) return { text: direct, origin };
    if (path?.startsWith(CREDENTIALS) && areCredentialsWithheld) return undefined;
    if (path !== undefined) return { text: readValue(`${name}_FILE`, path), origin: `${name}_FILE ${path}` };
  }
  if (env.CREDENTIALS_DIRECTORY) {
    const path = join(env.CREDENTIALS_DIRECTORY, credentialOf(name));
    if (existsSync(path)) return { text: readValue(name, path), origin: `credential ${path}` };
  }
  return undefined;
}

/** The folder in which systemd stores the credentials of units. */
const CREDENTIALS = '/run/credentials/';

/**
 * Whether this process was started by an ExecReload line of a unit (systemd sets MAINPID) and has no credentials. If the unit has its own
 * mount namespace, systemd 252 passes credentials to the first such line at most, and systemd 257 to none.
 */
export const isReloadWithoutCredentials = ({ MAINPID, CREDENTIALS_DIRECTORY }: Environment) =>
  MAINPID !== undefined && (CREDENTIALS_DIRECTORY === undefined || !existsSync(CREDENTIALS_DIRECTORY));

/** The name of the setting's credential in LoadCredential=. */
const credentialOf = (name: string) => name.toLowerCase().replaceAll('_', '-');

function readValue(name: string, path: string): string {
  try {
    return readTextFile(path).replace(/\r?\n$/, '');
  } catch (error) {
    throw new Error(`${name}: cannot read ${path}: ${whyUnreadable(error)}`, { cause: error });
  }
}
