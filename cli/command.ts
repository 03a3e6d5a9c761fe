/**
 * The declaration of a command. The parser, help, man pages and completion are generated from it. It is independent of
 * the library that parses the command line.
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
  /** Whether it can be repeated. */
  many: boolean;
  /** Without a kind, any text is accepted. */
  kind?: Kind<string>;
  completes?: Completes;
  /** Whether the arguments are another program's command line: options after the first argument belong to that program. */
  isCommandLine?: boolean;
}

/** Everything that a command receives when it runs. */
export interface Invocation<O extends Options = Options> {
  args: readonly string[];
  options: Values<O>;
  globals: Globals;
  shell: Shell;
  input: Input;
  output: Output;
  /** The daemon's address, for messages. */
  server: string;
  /** The daemon that the command addresses. @throws {Failure} if the context does not exist, or the contexts file is invalid. */
  destination: () => Destination;
  /** Finds the management token, and prompts for it if necessary. @throws {Failure} with exit code 2 or 3. */
  connect: () => Promise<ManagementClient>;
  /** @returns the help of the command or group that `words` name. @throws {Failure} if there is none. */
  helpOf: (words: readonly string[]) => Promise<string>;
}

export interface Command<O extends Options = Options> {
  path: readonly string[];
  alias?: string;
  /** Whether it is for programs only: help, man pages and completion omit it. */
  isHidden?: boolean;
  /** Whether it loads the daemon or the terminal UI, which are not in the bundle: see bundle.ts. */
  runsUnbundled?: boolean;
  summary: string;
  /** Global options that have no effect on it. It warns of them: the user expects something that does not happen. */
  ignores?: readonly (keyof Globals)[];
  /** Command lines without the leading `llmp `, each with an explanation. */
  examples: readonly (readonly [line: string, what: string])[];
  argument?: Argument;
  options: O;
  /**
   * The fields of what it prints, for a command that changes something: a mistake in `--template` must not be noticed only after that.
   * None of them has parts.
   */
  prints?(given: { options: Values<O> }): readonly string[];
  /** @returns the exit code. */
  run(invocation: Invocation<O>): Promise<number>;
}

/** Infers the types of the options' values for `run`. */
export const command = <O extends Options>(declared: Command<O>): Command<O> => declared;
