/**
 * Contexts: the daemons that an operator works with, by name, in one file that holds no secret itself. Where it is: LLMP_CONFIG, or
 * llmp/config.toml in XDG_CONFIG_HOME, or in ~/.config.
 */
import { type FileHandle, mkdir, open, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { oneOf } from '../../config/kinds.js';
import { quoted, usage } from '../../console/failure.js';
import { replaceFile } from '../init/replace-file.js';
import { serverOf } from './server.js';

export interface Context {
  server: string;
  /** A file with the management token. */
  tokenFile?: string;
  /** Prints the management token; a shell runs it. */
  tokenCommand?: string;
  /** A project's name or id, where one is needed and none is given. */
  projectId?: string;
  /** Each change is asked about. */
  protected?: boolean;
  /** No change is sent. */
  readonly?: boolean;
  /** Of its name on a screen. */
  color?: ContextColor;
}

export const CONTEXT_COLORS = ['red', 'yellow', 'green', 'cyan', 'blue', 'magenta'] as const;
export type ContextColor = (typeof CONTEXT_COLORS)[number];

export interface Contexts {
  /** The name of the one in use. */
  current: string | null;
  contexts: Record<string, Context>;
}

/** How a context's properties are spelled in the file, and what they may hold. */
const PROPERTIES: Record<string, { key: keyof Context; accepts: string; isFit: (value: unknown) => boolean }> = {
  server: { key: 'server', accepts: 'http://HOST:PORT, https://… or unix:PATH', isFit: isText },
  token_file: { key: 'tokenFile', accepts: 'the path of a file', isFit: isText },
  token_command: { key: 'tokenCommand', accepts: 'a command line', isFit: isText },
  project_id: { key: 'projectId', accepts: 'the name or id of a project', isFit: isText },
  protected: { key: 'protected', accepts: 'true or false', isFit: isFlag },
  readonly: { key: 'readonly', accepts: 'true or false', isFit: isFlag },
  color: {
    key: 'color',
    accepts: oneOf(...CONTEXT_COLORS).accepts,
    isFit: (value) => CONTEXT_COLORS.some((color) => color === value),
  },
};

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isFlag(value: unknown): value is boolean {
  return typeof value === 'boolean';
}

/** Letters that no shell, file or screen makes anything of. */
export const isContextName = (name: string) => /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(name);

/** @returns undefined for a user without a home. */
export function contextsPath({ LLMP_CONFIG, XDG_CONFIG_HOME, HOME }: NodeJS.ProcessEnv): string | undefined {
  if (LLMP_CONFIG) return LLMP_CONFIG;
  const folder = XDG_CONFIG_HOME || (HOME && join(HOME, '.config'));
  return folder ? join(folder, 'llmp', 'config.toml') : undefined;
}

/** A file that is not there has no contexts. @throws {Failure} for one that cannot be read or understood. */
export async function readContexts(env: NodeJS.ProcessEnv): Promise<Contexts> {
  const path = contextsPath(env);
  const content = path === undefined ? undefined : await contentOf(path);
  if (path === undefined || content === undefined) return { current: null, contexts: {} };
  // Only where there is a file: parsing it costs a tenth of a short command's time.
  const { parse } = await import('smol-toml');
  let document: unknown;
  try {
    document = parse(content);
  } catch (error) {
    const { line } = error as { line?: number };
    throw broken(path, line === undefined ? 'it is not TOML' : `line ${line} is not TOML`, error);
  }
  return understood(document as Record<string, unknown>, path);
}

/** Puts all of it in place at once, for its owner alone. @throws {Failure} without a place to write to. */
export async function writeContexts(env: NodeJS.ProcessEnv, { current, contexts }: Contexts): Promise<string> {
  const path = contextsPath(env);
  if (path === undefined)
    throw usage('no place to keep contexts', { advice: 'Set LLMP_CONFIG, XDG_CONFIG_HOME or HOME' });
  const { stringify } = await import('smol-toml');
  const content = stringify({
    ...(current !== null && { current }),
    contexts: Object.fromEntries(Object.entries(contexts).map(([name, context]) => [name, spelled(context)])),
  });
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    replaceFile(path, `${content}\n`, 0o600, null);
  } catch (error) {
    throw usage(`cannot write ${path}`, { why: (error as NodeJS.ErrnoException).code ?? 'failed', cause: error });
  }
  return path;
}

async function contentOf(path: string): Promise<string | undefined> {
  let file: FileHandle;
  try {
    file = await open(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw unreadable(path, error);
  }
  try {
    // What is in it is run, and decides where credentials go.
    refuseForeign(path, await file.stat());
    refuseForeign(dirname(path), await stat(dirname(path)));
    return await file.readFile('utf8').catch((error: unknown) => Promise.reject(unreadable(path, error)));
  } finally {
    await file.close();
  }
}

/** @throws {Failure} for what belongs to another user than this one and root, or can be written by others. */
function refuseForeign(path: string, { mode, uid }: { mode: number; uid: number }): void {
  if (uid !== 0 && uid !== process.getuid?.()) {
    throw usage(`${path} belongs to another user (uid ${uid})`, {
      why: 'its owner could have any command run, and your management token sent anywhere',
      advice: 'Set LLMP_CONFIG to a file of your own',
    });
  }
  // In a folder with the sticky bit, such as /tmp, nobody can replace what belongs to others.
  if (mode & 0o022 && !(mode & 0o1000)) {
    throw usage(`${path} can be written by others`, { advice: `Keep it to yourself: chmod go-w ${path}` });
  }
}

const unreadable = (path: string, cause: unknown) =>
  usage(`cannot read ${path}`, { why: (cause as NodeJS.ErrnoException).code ?? 'failed', cause });

const broken = (path: string, why: string, cause?: unknown) =>
  usage(`${path} cannot be understood`, { why, advice: 'Mend it, or see: llmp help context add', cause });

function understood({ current = null, contexts = {}, ...others }: Record<string, unknown>, path: string): Contexts {
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw broken(path, `there is no ${quoted(unknown)}`);
  if (current !== null && !isText(current)) throw broken(path, 'current must be the name of a context');
  if (!isTable(contexts)) throw broken(path, 'contexts must be tables');
  const found = Object.entries(contexts).map(([name, table]) => {
    if (!isContextName(name)) throw broken(path, `${quoted(name)} cannot be the name of a context`);
    if (!isTable(table)) throw broken(path, `contexts.${name} must be a table`);
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
    if (!property) throw broken(path, `contexts.${name} has an unknown ${quoted(word)}`);
    if (!property.isFit(value)) throw broken(path, `contexts.${name}.${word} must be ${property.accepts}`);
    context[property.key] = value;
  }
  if (!isText(context.server)) throw broken(path, `contexts.${name} has no server`);
  serverOf(context.server, `contexts.${name}.server`);
  return context as unknown as Context; // Each of its properties has been looked at above.
}

function spelled(context: Context): Record<string, string | boolean> {
  const pairs = Object.entries(PROPERTIES).map(([word, { key }]) => [word, context[key]] as const);
  return Object.fromEntries(pairs.filter((pair): pair is [string, string | boolean] => pair[1] !== undefined));
}
