/**
 * The environment that systemd gives the daemon besides its env file: credentials and folders. A command that reads the daemon's settings
 * in a shell lacks it: it would not find the management token, and would look for the database in the current folder.
 */
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { settingNamed, SettingsError } from '../config/settings.js';
import { readEnvFile } from '../config/sources.js';
import type { Invocation } from './command.js';

type Environment = NodeJS.ProcessEnv;

/** The environment that a systemd unit gives the daemon. */
export interface UnitEnvironment {
  /** For example `llmp.service`. */
  unit: string;
  /** The command's environment, the folders of the unit, and `NAME_FILE` for each existing credential. */
  env: Environment;
  /** Credential files that this user cannot read. */
  unreadable: readonly string[];
}

/**
 * The environment of the daemon that systemd runs with this env file, for a command that reads its settings. Prints the name of the unit.
 *
 * @returns the command's own environment if no unit uses this env file.
 */
export async function daemonEnvironment(
  { shell, output }: Pick<Invocation, 'shell' | 'output'>,
  envFile: string | undefined,
): Promise<Environment> {
  const found = await unitEnvironmentOf(shell.env, envFile);
  if (!found) return shell.env;
  output.note(`Using the credentials and folders of ${found.unit}.`);
  for (const path of found.unreadable) {
    output.warn(`cannot read ${path}, a credential of ${found.unit}; run this command as root`);
  }
  return found.env;
}

const SYSTEMCTL_TIMEOUT_MS = 3_000;
const INSTANCE = /^llmp-(.+)\.env$/;
// Where systemd looks for credentials that a unit names without a path.
const CREDENTIAL_STORES = ['/etc/credstore', '/run/credstore', '/usr/local/lib/credstore', '/usr/lib/credstore'];

/**
 * @param env the environment of the command. Its variables take precedence over the unit.
 * @param envFile the value of --env-file.
 * @returns null if no unit uses this env file, and if the command itself runs in a unit.
 */
async function unitEnvironmentOf(env: Environment, envFile: string | undefined): Promise<UnitEnvironment | null> {
  if (envFile === undefined || env.CREDENTIALS_DIRECTORY !== undefined) return null;
  const path = resolve(envFile);
  const instance = INSTANCE.exec(basename(path))?.[1];
  for (const unit of ['llmp.service', ...(instance === undefined ? [] : [`llmp@${instance}.service`])]) {
    const text = await unitText(unit, env.PATH);
    const lines = text === null ? null : new UnitLines(text, instance ?? '');
    if (lines?.envFile === path) return { unit, ...environmentFrom(lines, env, path) };
  }
  return null;
}

function environmentFrom(lines: UnitLines, env: Environment, envFile: string): Omit<UnitEnvironment, 'unit'> {
  const file = valuesIn(envFile);
  const isSet = (name: string) =>
    [env, file].some((each) => each[name] !== undefined || each[`${name}_FILE`] !== undefined);
  const added: Environment = {};
  const unreadable: string[] = [];
  for (const [credential, source] of lines.credentials) {
    const name = credential.toUpperCase().replaceAll('-', '_');
    const path = source.startsWith('/') ? source : CREDENTIAL_STORES.map((at) => join(at, source)).find(existsSync);
    if (path === undefined || !settingNamed(name) || isSet(name)) continue;
    if (isReadable(path)) added[`${name}_FILE`] = path;
    else if (existsSync(path) || process.getuid?.() !== 0) unreadable.push(path);
  }
  for (const [name, parent] of Object.entries(PARENTS)) {
    const folder = lines.last(name);
    if (folder !== undefined)
      added[variableOf(name)] = folder
        .split(' ')
        .map((each) => join(parent, each))
        .join(':');
  }
  return { env: { ...added, ...env }, unreadable };
}

function valuesIn(envFile: string): Environment {
  try {
    return { ...readEnvFile(envFile).values };
  } catch (error) {
    if (error instanceof SettingsError) return {}; // The command reports the error itself.
    throw error;
  }
}

const PARENTS: Readonly<Record<string, string>> = { StateDirectory: '/var/lib', LogsDirectory: '/var/log' };

/** StateDirectory → STATE_DIRECTORY */
const variableOf = (name: string) => name.replace(/(?!^)[A-Z]/g, '_$&').toUpperCase();

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** A unit with its drop-ins, as `systemctl cat` prints them: later lines win, and an empty value clears the earlier ones. */
class UnitLines {
  readonly #values = new Map<string, string[]>();

  /** @param instance the value of %i. */
  constructor(text: string, instance: string) {
    for (const line of text.replaceAll(/\\\n\s*/g, ' ').split('\n')) {
      const [, name, value] = /^\s*([A-Za-z]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
      if (name === undefined || value === undefined) continue;
      const before = value === '' ? [] : (this.#values.get(name) ?? []);
      this.#values.set(name, value === '' ? [] : [...before, value.replaceAll('%i', instance).replaceAll('%%', '%')]);
    }
  }

  last(name: string): string | undefined {
    return this.#values.get(name)?.at(-1);
  }

  /** Paths of credential files by the names of the credentials. */
  get credentials(): ReadonlyMap<string, string> {
    return new Map(
      (this.#values.get('LoadCredential') ?? []).map((value) => {
        const at = value.indexOf(':');
        return at < 0 ? [value, value] : [value.slice(0, at), value.slice(at + 1)];
      }),
    );
  }

  /** The path in `--env-file`. If that is a credential, the file from which systemd loads it. */
  get envFile(): string | undefined {
    const path = /\s--env-file[= ]"?([^"\s]+)/.exec(this.last('ExecStart') ?? '')?.[1];
    return path?.startsWith('%d/') ? this.credentials.get(path.slice('%d/'.length)) : path;
  }
}

/** @returns null if there is no such unit, or no systemd. */
function unitText(unit: string, path: string | undefined): Promise<string | null> {
  return new Promise((found) => {
    const options = {
      timeout: SYSTEMCTL_TIMEOUT_MS,
      env: { PATH: path, LC_ALL: 'C', SYSTEMD_PAGER: '' },
      maxBuffer: 2 ** 20,
    };
    execFile('systemctl', ['cat', '--no-pager', unit], options, (error, stdout) => {
      found(error ? null : stdout);
    });
  });
}
