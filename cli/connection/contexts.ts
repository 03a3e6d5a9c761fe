/**
 * Contexts: named daemons, in a TOML file that contains no secrets. Its path is LLMP_CONFIG, or llmp/config.toml in XDG_CONFIG_HOME or
 * in ~/.config.
 */
import { mkdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { oneOf } from '../../config/kinds.js';
import { UUID_PATTERN } from '../../daemon/api/vocabulary.js';
import { quoted, usage } from '../../console/failure.js';
import { readOwnFile, replaceFile } from '../../console/own-file.js';
import { serverOf } from './server.js';

export interface Context {
  server: string;
  /** A file that contains the management token, or what stands in its place. */
  tokenFile?: string;
  /** A shell command that prints the management token. */
  tokenCommand?: string;
  /** ID of the session whose secret is in the token file: of `llmp login`. */
  sessionId?: string;
  /** The default project for new tokens, by name or ID. */
  projectId?: string;
  /** Changes need a confirmation. */
  protected?: boolean;
  /** Changes are refused. */
  readonly?: boolean;
  /** Color of the context's name in the terminal UI. */
  color?: ContextColor;
}

export const CONTEXT_COLORS = ['red', 'yellow', 'green', 'cyan', 'blue', 'magenta'] as const;
export type ContextColor = (typeof CONTEXT_COLORS)[number];

export interface Contexts {
  /** The name of the current context. */
  current: string | null;
  contexts: Record<string, Context>;
}

/** The properties of a context in the file, with their accepted values. */
const PROPERTIES: Record<string, { key: keyof Context; accepts: string; isValid: (value: unknown) => boolean }> = {
  server: { key: 'server', accepts: 'http://HOST:PORT, https://… or unix:PATH', isValid: isText },
  token_file: { key: 'tokenFile', accepts: 'the path of a file', isValid: isText },
  token_command: { key: 'tokenCommand', accepts: 'a command line', isValid: isText },
  session_id: { key: 'sessionId', accepts: 'the ID of a session', isValid: isUuid },
  project_id: { key: 'projectId', accepts: 'the name or ID of a project', isValid: isText },
  protected: { key: 'protected', accepts: 'true or false', isValid: isFlag },
  readonly: { key: 'readonly', accepts: 'true or false', isValid: isFlag },
  color: {
    key: 'color',
    accepts: oneOf(...CONTEXT_COLORS).accepts,
    isValid: (value) => CONTEXT_COLORS.some((color) => color === value),
  },
};

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isUuid(value: unknown): value is string {
  return isText(value) && UUID_PATTERN.test(value);
}

function isFlag(value: unknown): value is boolean {
  return typeof value === 'boolean';
}

/** Context names contain only characters without a special meaning in shells, file names and terminals. */
export const isContextName = (name: string) => /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(name);

/** @returns undefined if neither LLMP_CONFIG nor XDG_CONFIG_HOME nor HOME is set. */
export function contextsPath({ LLMP_CONFIG, XDG_CONFIG_HOME, HOME }: NodeJS.ProcessEnv): string | undefined {
  if (LLMP_CONFIG) return LLMP_CONFIG;
  const folder = XDG_CONFIG_HOME || (HOME && join(HOME, '.config'));
  return folder ? join(folder, 'llmp', 'config.toml') : undefined;
}

/** The folder of the contexts file, which also has the files of the terminal UI. */
export function settingsFolder(env: NodeJS.ProcessEnv): string | undefined {
  const path = contextsPath(env);
  return path === undefined ? undefined : dirname(path);
}

/** The file of the session of a context. @throws {Failure} if there is no folder for it. */
export function sessionPath(env: NodeJS.ProcessEnv, name: string): string {
  const path = contextsPath(env);
  if (path === undefined) throw noPath();
  return join(dirname(resolve(path)), `${name}.session`);
}

/** The folder of what llmp keeps for itself, such as the history of the terminal UI. */
export function stateFolder({ XDG_STATE_HOME, HOME }: NodeJS.ProcessEnv): string | undefined {
  const folder = XDG_STATE_HOME || (HOME && join(HOME, '.local/state'));
  return folder ? join(folder, 'llmp') : undefined;
}

/** A missing file has no contexts. @throws {Failure} if the file cannot be read, or is invalid. */
export async function readContexts(env: NodeJS.ProcessEnv): Promise<Contexts> {
  const path = contextsPath(env);
  const content = path === undefined ? undefined : await contentOf(path);
  if (path === undefined || content === undefined) return { current: null, contexts: {} };
  // Loaded only if there is a file: the parser takes a tenth of a short command's time.
  const { parse } = await import('smol-toml');
  let document: unknown;
  try {
    document = parse(content);
  } catch (error) {
    const { line } = error as { line?: number };
    throw invalidFile(path, line === undefined ? 'it is not TOML' : `line ${line} is not TOML`, error);
  }
  return contextsFrom(document as Record<string, unknown>, path);
}

/** Replaces the file atomically, with mode 0600. @throws {Failure} if it has no path, or cannot be written. */
export async function writeContexts(env: NodeJS.ProcessEnv, { current, contexts }: Contexts): Promise<string> {
  const path = contextsPath(env);
  if (path === undefined) throw noPath();
  const { stringify } = await import('smol-toml');
  const content = stringify({
    ...(current !== null && { current }),
    contexts: Object.fromEntries(Object.entries(contexts).map(([name, context]) => [name, toTable(context)])),
  });
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    replaceFile(path, `${content}\n`, 0o600, null);
  } catch (error) {
    throw usage(`cannot write ${path}`, { why: (error as NodeJS.ErrnoException).code ?? 'failed', cause: error });
  }
  return path;
}

const noPath = () => usage('no path for the contexts file', { advice: 'Set LLMP_CONFIG, XDG_CONFIG_HOME or HOME' });

/** The file contains commands that llmp runs, and decides where credentials are sent. */
const contentOf = (path: string) =>
  readOwnFile(path, {
    risk: 'its owner could make llmp run any command, or send your management token anywhere',
    advice: 'Set LLMP_CONFIG to a file that you own',
  });

const invalidFile = (path: string, why: string, cause?: unknown) =>
  usage(`${path} is not a valid contexts file`, { why, advice: 'Correct it. See: llmp help context add', cause });

function contextsFrom({ current = null, contexts = {}, ...others }: Record<string, unknown>, path: string): Contexts {
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw invalidFile(path, `unknown property ${quoted(unknown)}`);
  if (current !== null && !isText(current)) throw invalidFile(path, 'current must be the name of a context');
  if (!isTable(contexts)) throw invalidFile(path, 'contexts must be tables');
  const found = Object.entries(contexts).map(([name, table]) => {
    if (!isContextName(name)) throw invalidFile(path, `${quoted(name)} is not a valid context name`);
    if (!isTable(table)) throw invalidFile(path, `contexts.${name} must be a table`);
    return [name, contextOf(name, table, path)] as const;
  });
  return { current, contexts: Object.fromEntries(found) };
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function contextOf(name: string, table: Record<string, unknown>, path: string): Context {
  const context: Partial<Record<keyof Context, unknown>> = {};
  for (const [word, value] of Object.entries(table)) {
    const property = PROPERTIES[word];
    if (!property) throw invalidFile(path, `contexts.${name} has an unknown property ${quoted(word)}`);
    if (!property.isValid(value)) throw invalidFile(path, `contexts.${name}.${word} must be ${property.accepts}`);
    context[property.key] = value;
  }
  if (!isText(context.server)) throw invalidFile(path, `contexts.${name} has no server`);
  serverOf(context.server, `contexts.${name}.server`);
  return context as unknown as Context; // All of its properties were checked above.
}

function toTable(context: Context): Record<string, string | boolean> {
  const pairs = Object.entries(PROPERTIES).map(([word, { key }]) => [word, context[key]] as const);
  return Object.fromEntries(pairs.filter((pair): pair is [string, string | boolean] => pair[1] !== undefined));
}
