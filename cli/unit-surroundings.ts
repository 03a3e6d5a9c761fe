/**
 * What systemd gives the daemon besides its env file: credentials and folders. A command that reads the daemon's settings at a shell
 * has none of it, and would miss the management token or look for the database below the current folder.
 */
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { settingNamed, SettingsError } from '../config/settings.js';
import { readEnvFile } from '../config/sources.js';
import type { Invocation } from './command.js';

type Environment = NodeJS.ProcessEnv;

/** Settings that systemd would hand over, and the unit that says so. */
export interface UnitSurroundings {
  /** Such as `llmp.service`. */
  unit: string;
  /** The environment that was given, with the folders of the unit and `NAME_FILE` for each credential that is there. */
  env: Environment;
  /** Files of credentials that this user may not read. */
  unreadable: readonly string[];
}

/**
 * The environment of the daemon that systemd runs with this env file, for a command that reads its settings. Says whose it is.
 *
 * @returns the environment of the command where there is no such unit.
 */
export async function daemonEnvironment(
  { shell, output }: Pick<Invocation, 'shell' | 'output'>,
  envFile: string | undefined,
): Promise<Environment> {
  const found = await surroundingsOf(shell.env, envFile);
  if (!found) return shell.env;
  output.note(`Using the credentials and folders of ${found.unit}.`);
  for (const path of found.unreadable) {
    output.warn(`cannot read ${path}, a credential of ${found.unit}. Run this command as root`);
  }
  return found.env;
}

const ANSWER_MS = 3_000;
const INSTANCE = /^llmp-(.+)\.env$/;
// Where systemd looks for a credential that the unit names without a folder.
const CREDENTIAL_STORES = ['/etc/credstore', '/run/credstore', '/usr/local/lib/credstore', '/usr/lib/credstore'];

/**
 * @param env of the command. What it sets wins over the unit.
 * @param envFile the file that the command was given.
 * @returns null where no unit runs a daemon with this env file, and within a unit.
 */
export async function surroundingsOf(env: Environment, envFile: string | undefined): Promise<UnitSurroundings | null> {
  if (envFile === undefined || env.CREDENTIALS_DIRECTORY !== undefined) return null;
  const path = resolve(envFile);
  const instance = INSTANCE.exec(basename(path))?.[1];
  for (const unit of ['llmp.service', ...(instance === undefined ? [] : [`llmp@${instance}.service`])]) {
    const text = await unitText(unit, env.PATH);
    const lines = text === null ? null : new UnitLines(text, instance ?? '');
    if (lines?.envFile === path) return { unit, ...around(lines, env, path) };
  }
  return null;
}

function around(lines: UnitLines, env: Environment, envFile: string): Omit<UnitSurroundings, 'unit'> {
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
    if (error instanceof SettingsError) return {}; // The command says what is wrong with it.
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

/** A unit with its drop-ins, as `systemctl cat` prints them: later lines win, an empty value clears what was before. */
class UnitLines {
  readonly #values = new Map<string, string[]>();

  /** @param instance what stands for %i. */
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

  /** Paths of files by the names of their credentials. */
  get credentials(): ReadonlyMap<string, string> {
    return new Map(
      (this.#values.get('LoadCredential') ?? []).map((value) => {
        const at = value.indexOf(':');
        return at < 0 ? [value, value] : [value.slice(0, at), value.slice(at + 1)];
      }),
    );
  }

  /** The file that `--env-file` names; for a credential, where systemd takes it from. */
  get envFile(): string | undefined {
    const path = /\s--env-file[= ]"?([^"\s]+)/.exec(this.last('ExecStart') ?? '')?.[1];
    return path?.startsWith('%d/') ? this.credentials.get(path.slice('%d/'.length)) : path;
  }
}

/** Null where there is no such unit, or no systemd. */
function unitText(unit: string, path: string | undefined): Promise<string | null> {
  return new Promise((found) => {
    const options = { timeout: ANSWER_MS, env: { PATH: path, LC_ALL: 'C', SYSTEMD_PAGER: '' }, maxBuffer: 2 ** 20 };
    execFile('systemctl', ['cat', '--no-pager', unit], options, (error, stdout) => {
      found(error ? null : stdout);
    });
  });
}
