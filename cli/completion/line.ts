/** Interprets an incomplete command line for completion. */
import type { Command } from '../command.js';
import { GLOBAL_OPTIONS } from '../globals.js';
import type { Tree } from '../help/tree.js';
import type { Option } from '../option.js';

/** A command line up to the word to be completed. */
export interface Line {
  path: readonly string[];
  command: Command | undefined;
  args: readonly string[];
  /** Values of options by their keys. */
  given: Readonly<Record<string, string>>;
  /** The option whose value is the next word. */
  awaiting: Option<unknown> | undefined;
  /** Whether the next word can be an option. */
  takesOptions: boolean;
}

/** Reads the words as the parser does, but tolerates all errors. */
export function lineOf(words: readonly string[], tree: Tree): Line {
  let path: readonly string[] = [];
  const args: string[] = [];
  const given: Record<string, string> = {};
  let awaiting: readonly [string, Option<unknown>] | undefined;
  let takesOptions = true;
  for (const word of words) {
    const next = args.length === 0 ? tree.resolved([...path, word]) : undefined;
    if (awaiting) {
      given[awaiting[0]] = word;
      awaiting = undefined;
    } else if (takesOptions && word === '--') takesOptions = false;
    else if (takesOptions && /^-./.test(word)) {
      const [, name = word, attached] = /^(--[^=]*|-\w)=?(.+)?$/s.exec(word) ?? [];
      const found = optionsOf(tree.commandAt(path)).find(([, option]) => namesOf(option).includes(name));
      given[found?.[0] ?? name] = attached ?? '';
      if (found && takesValue(found[1]) && attached === undefined) awaiting = found;
    } else if (next) path = next;
    else {
      args.push(word);
      // Options after the name of a program to run belong to that program.
      if (tree.commandAt(path)?.argument?.isCommandLine) takesOptions = false;
    }
  }
  return { path, command: tree.commandAt(path), args, given, awaiting: awaiting?.[1], takesOptions };
}

export const optionsOf = (command: Command | undefined): [string, Option<unknown>][] => [
  ...Object.entries(command?.options ?? {}),
  ...Object.entries(GLOBAL_OPTIONS),
];
export const namesOf = ({ flags }: Option<unknown>): readonly string[] => flags.match(/(?<=^|\s)--?[\w-]+/g) ?? [];
export const takesValue = ({ flags }: Option<unknown>) => flags.includes('<');
