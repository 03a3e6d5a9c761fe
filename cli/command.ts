/**
 * A command is a declaration: parser, help, man pages and completion are made from it. Nothing here knows
 * the library that parses.
 */
import type { Kind } from '../config/kinds.js';
import type { ManagementClient } from '../daemon/api/client.js';
import type { Destination } from './connection/destination.js';
import type { Globals } from './globals.js';
import type { Input } from './input.js';
import type { Completes, Options, Values } from './option.js';
import type { Output } from './output.js';
import type { Shell } from './shell.js';

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
