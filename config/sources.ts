/** Where the text of a setting comes from: the environment, the env file, a file that one of these names, a credential. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Everything that is wrong with the configuration, one line each, without a value of a secret. */
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
}

/** Where settings are read from. What stands in the environment wins over the file. */
export interface Sources {
  env: Environment;
  file?: EnvFile | undefined;
  /** Whether the log goes to where a person reads it; LOG_FORMAT follows that. */
  isReadByPeople?: boolean;
  /** Options that the process itself was started with. */
  execArgv?: readonly string[];
  /** Whether systemd keeps the unit's credentials from this process: a secret that is not set may be one of them. */
  areCredentialsWithheld?: boolean;
}

/** Where a value came from. `text` is as written, before parsing. */
export interface Found {
  text: string;
  /** `environment`, `env file PATH`, `NAME_FILE PATH`, `credential PATH` or `default`. */
  origin: string;
}

// No setting holds a line break, and a quote left open would swallow the settings below it.
const LINE = /^\s*(?:(?:export\s+)?[A-Za-z_]\w*\s*=\s*(?:(["'`])(?:(?!\1).)*\1\s*(?:#.*)?|[^"'`\s].*)?|#.*)?$/;

export const isEnvLine = (line: string) => LINE.test(line);

/**
 * Reads a file of `NAME=value` lines.
 *
 * @throws {SettingsError} when it cannot be read, or with each line that is something else: Node's parser would pass over
 * such a line without a word, and over what follows it.
 */
export function readEnvFile(path: string): EnvFile {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new SettingsError([`--env-file: cannot read ${path}: ${codeOf(error)}`]);
  }
  const problems = text
    .split(/\r?\n/)
    .flatMap((line, index) => (isEnvLine(line) ? [] : [`--env-file: ${path}, line ${index + 1}: not NAME=value`]));
  if (problems.length > 0) throw new SettingsError(problems);
  return { path, values: parseEnv(text) };
}

/** @returns what was given for a setting, undefined when nothing was. @throws {Error} for what cannot be read, or is given twice. */
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

/** Where systemd has the credentials of its units, one folder for each. */
const CREDENTIALS = '/run/credentials/';

/**
 * Whether this process is an ExecReload line of a unit (systemd sets MAINPID) that was given no credentials. systemd 252 gives them to
 * the first such line at most and 257 to none, where the unit has a mount namespace of its own.
 */
export const isReloadWithoutCredentials = ({ MAINPID, CREDENTIALS_DIRECTORY }: Environment) =>
  MAINPID !== undefined && (CREDENTIALS_DIRECTORY === undefined || !existsSync(CREDENTIALS_DIRECTORY));

/** What systemd's LoadCredential= is to call it. */
const credentialOf = (name: string) => name.toLowerCase().replaceAll('_', '-');

function readValue(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new Error(`${name}: cannot read ${path}: ${codeOf(error)}`, { cause: error });
  }
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? 'failed';
