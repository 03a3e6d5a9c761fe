/** Shared parts of `llmp run` and `llmp connect`: from a command's profile to variables, arguments and files. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { type Kind, oneOf } from '../config/kinds.js';
import type { Dialect } from '../daemon/api/providers.js';
import { shortShellWord, visible } from '../console/escape.js';
import { EXIT, Failure, usage } from '../console/failure.js';
import type { View } from '../console/table.js';
import { serverOf } from './connection/server.js';
import { value, text } from './option.js';
import type { Output } from './output.js';
import { ANY_PROGRAM, type Profile, PROFILE_NAMES, profileOf, type SetUp } from './profiles.js';
import { PROVIDER_KEYS, SDKS } from './sdk-variables.js';

const baseUrl: Kind<string> = {
  accepts: 'http://… or https://…, without credentials',
  parse(given) {
    const url = URL.canParse(given) ? new URL(given) : undefined;
    const isPlain = url && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash;
    return isPlain ? given : undefined;
  },
};

export const baseUrlOption = value(
  '--base-url <URL>',
  baseUrl,
  'base URL for the command (default: that of the server)',
);
export const asOption = value(
  '--as <NAME>',
  oneOf(...PROFILE_NAMES),
  `set up the command as if it were called NAME: ${PROFILE_NAMES.join(', ')} (default: the name of its file)`,
);
export const modelOption = text('--model <NAME>', 'model, for commands whose configuration must name one: cn', 'model');

/** @returns that of any program if the name is unknown. @throws {Failure} if it needs a model and none is given. */
export function profileFor(name: string, model: string | undefined): Profile {
  const profile = profileOf(name) ?? ANY_PROGRAM;
  if (profile.needsModel && model === undefined)
    throw usage(`${name} needs a model`, { advice: 'Name it with --model' });
  return profile;
}

/** @throws {Failure} if a command cannot speak the API of the project. */
export function checkDialects(name: string, { dialects, takesSeveral }: Profile, wanted: readonly Dialect[]): void {
  const other = wanted.find((dialect) => !dialects.includes(dialect));
  if (other !== undefined) {
    throw usage(`${visible(name)} cannot use a project for ${other}`, {
      why: `it speaks ${dialects.join(', ')}`,
      advice: 'Select another project with --project-id',
    });
  }
  if (wanted.length > 1 && !takesSeveral)
    throw usage(`${visible(name)} is set up for one SDK`, { advice: 'Name one SDK with --for' });
}

/** @throws {Failure} for a unix socket, which has no base URL for clients. */
export function originOf(server: string): string {
  const { url, socketPath } = serverOf(server);
  if (socketPath === undefined) return url;
  throw usage('a unix socket has no base URL', { advice: 'Use --base-url with the TCP address of /v1' });
}

/** The base URL that the SDK takes. @param given replaces that of the daemon. */
export const urlOf = (dialect: Dialect, origin: string, given: string | undefined): string =>
  (given ?? origin + SDKS[dialect].path).replace(/\/+$/, '');

/** One set-up that contains all of these. */
export function merged(setUps: readonly SetUp[]): Required<SetUp> {
  return {
    variables: Object.assign({}, ...setUps.map(({ variables }) => variables)) as SetUp['variables'],
    args: setUps.flatMap(({ args = [] }) => args),
    files: Object.assign({}, ...setUps.map(({ files }) => files)) as Required<SetUp>['files'],
  };
}

const PROXY = /^(?:https?|all)_proxy$/i;
const LOOPBACK = /^(?:localhost|127\.[\d.]+|\[::1\])$/;

/** Variables that keep a command from asking a proxy for a daemon on this machine, which the proxy cannot reach. */
export function directAccess(urls: readonly string[], inherited: NodeJS.ProcessEnv): SetUp['variables'] {
  const hosts = urls.map((url) => new URL(url).hostname).filter((host) => LOOPBACK.test(host));
  if (hosts.length === 0 || !Object.keys(inherited).some((name) => PROXY.test(name))) return {};
  const given = inherited.NO_PROXY ?? inherited.no_proxy ?? '';
  const list = [...(given === '' ? [] : [given]), ...new Set(hosts)].join(',');
  // Programs differ in which of them they read.
  return { NO_PROXY: list, no_proxy: list };
}

/** A private folder for the files that a command is pointed at. */
export class SetUpFolder {
  #path: string | null = null;

  /** It is created at first: most commands need none. @throws {Failure} if that is not possible. */
  get path(): string {
    try {
      return (this.#path ??= mkdtempSync(join(resolve(tmpdir()), 'llmp-run-')));
    } catch (error) {
      const why = (error as NodeJS.ErrnoException).code ?? 'failed';
      throw new Failure(EXIT.notExecutable, `cannot create a folder in ${tmpdir()}`, {
        why,
        code: 'command_not_executable',
        advice: 'Set TMPDIR to a folder that you can write to',
        cause: error,
      });
    }
  }

  write(files: Readonly<Record<string, string>>): void {
    for (const [name, content] of Object.entries(files)) {
      const file = join(this.path, name);
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
      writeFileSync(file, content, { mode: 0o600 });
    }
  }

  /** Also what the command has written there. */
  remove(output: Output): void {
    if (this.#path === null) return;
    try {
      // Processes that the command left behind may still write to it.
      rmSync(this.#path, { recursive: true, force: true, maxRetries: 3 });
    } catch (error) {
      output.warn(`could not remove ${this.#path}: ${(error as NodeJS.ErrnoException).code ?? 'failed'}`);
    }
  }
}

interface Shown extends Required<SetUp> {
  removed: readonly string[];
  command: readonly string[];
}

const shownView: View<Shown> = {
  idOf: ({ command: [file = ''] }) => file,
  fields: ['variables', 'removed', 'files', 'args', 'command'],
  columns: [{ title: 'COMMAND', rank: 0, show: ({ command }) => command.join(' ') }],
};

/** Prints the set-up of a command: as a shell would run it, or as data. */
export async function show(
  setUp: Required<SetUp>,
  [file = '', ...rest]: readonly string[],
  inherited: NodeJS.ProcessEnv,
  output: Output,
): Promise<void> {
  const removed = PROVIDER_KEYS.filter((name) => name in inherited && !(name in setUp.variables));
  const command = [file, ...setUp.args, ...rest];
  if (output.format !== 'table') {
    await output.one({ ...setUp, removed, command }, shownView);
    return;
  }
  for (const [name, content] of Object.entries(setUp.files)) output.text(`# FOLDER/${name}\n${content.trimEnd()}\n`);
  if (removed.length > 0) output.text(`unset ${removed.join(' ')}`);
  for (const [name, text] of Object.entries(setUp.variables)) output.text(`export ${name}=${shortShellWord(text)}`);
  output.text(command.map((word) => visible(shortShellWord(word))).join(' '));
}
