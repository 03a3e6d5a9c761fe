/**
 * A command is a declaration: parser, help, man pages and completion are made from it. Nothing here knows
 * the library that parses.
 */
import type { Kind } from '../config/kinds.js';
import type { ManagementClient } from '../daemon/api/client.js';
import type { Destination } from './connection/destination.js';
import type { Globals } from './globals.js';
import type { Input } from './input.js';
import type { Output } from './output.js';
import type { Shell } from './shell.js';

/** What a word stands for, for the completion of it. A `<FILE>` says so by that name, a list of values by its kind. */
export type Completes = 'project' | 'token' | 'context' | 'topic' | 'page';

export interface Option<T> {
  /** Such as `-q, --quiet` or `--name <TEXT>`. Its long name in camel case is its key in the table of options. */
  flags: string;
  meaning: string;
  /** None: a flag, or text taken as it is. */
  kind?: Kind<T>;
  completes?: Completes | undefined;
}

// The type parameter lives in the values only; any option fits in a table.
export type Options = Record<string, Option<unknown>>;
/** What was given on the line; nothing has a default here. */
export type Values<O extends Options> = { [K in keyof O]?: O[K] extends Option<infer T> ? T | undefined : never };

export const flag = (flags: string, meaning: string): Option<boolean> => ({ flags, meaning });
export const text = (flags: string, meaning: string, completes?: Completes): Option<string> => ({
  flags,
  meaning,
  completes,
});
/** May be given several times. @param flags such as `--set <TEXT...>`. */
export const texts = (flags: string, meaning: string): Option<string[]> => ({ flags, meaning });
export const value = <T>(flags: string, kind: Kind<T>, meaning: string): Option<T> => ({
  flags,
  meaning,
  kind,
});

/** Some of these, separated by commas or given one by one; or all but some, with `!` in front of the first. */
export function valuesOf(flags: string, all: readonly string[], meaning: string): Option<string> {
  const kind: Kind<string> = {
    accepts: `one or more of ${all.join(', ')}, separated by commas; with ! in front of the first, all but these`,
    values: all,
    isList: true,
    parse(given) {
      const named = given.replace(/^!/, '').split(',');
      return named.every((each) => all.includes(each)) ? given : undefined;
    },
  };
  return value(flags, kind, meaning);
}

export interface Argument {
  /** As shown in the synopsis: `ID`. */
  name: string;
  meaning: string;
  required: boolean;
  /** One or more of them. */
  many: boolean;
  /** None: any text. */
  kind?: Kind<string>;
  completes?: Completes;
  /** They are a command line of their own: from the first on nothing is an option of ours. */
  isCommandLine?: boolean;
}

/** What a command gets to run with. */
export interface Invocation<O extends Options = Options> {
  args: readonly string[];
  options: Values<O>;
  globals: Globals;
  shell: Shell;
  input: Input;
  output: Output;
  /** Where the daemon is, for messages. */
  server: string;
  /** Where the command goes. @throws {Failure} when a context or the file of contexts is amiss. */
  destination: () => Destination;
  /** Finds the management token, asking for it if need be. @throws {Failure} with exit 2 or 3. */
  connect: () => Promise<ManagementClient>;
  /** @returns the help of the command or group that `words` lead to. @throws {Failure} when they lead nowhere. */
  helpOf: (words: readonly string[]) => Promise<string>;
}

export interface Command<O extends Options = Options> {
  path: readonly string[];
  alias?: string;
  /** Asked for by programs only: neither help nor man pages nor completion name it. */
  isHidden?: boolean;
  summary: string;
  /** Command lines without the leading `llmp `, each with what it does. */
  examples: readonly (readonly [line: string, what: string])[];
  argument?: Argument;
  options: O;
  /** @returns the exit code. */
  run(invocation: Invocation<O>): Promise<number>;
}

/** Infers the types of the options' values for `run`. */
export const command = <O extends Options>(declared: Command<O>): Command<O> => declared;
