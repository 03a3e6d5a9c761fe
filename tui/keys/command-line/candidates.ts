/** What the command line offers: commands and actions for its first word, and then the argument's completions. */
import { fuzzyRank } from '../../../console/fuzzy.js';
import type { CommandLine } from '../../state/layers.js';
import { view, type State } from '../../state/state.js';
import { isOffered, type NamedBinding, withCustomKeys } from '../binding.js';
import { SCREEN_BINDINGS } from '../screens.js';
import { type Command, commandNamed, COMMANDS, commandsFor } from './commands.js';

export type Candidate =
  | { kind: 'command'; command: Command }
  | { kind: 'action'; binding: NamedBinding }
  | { kind: 'argument'; insert: string; what: string };

export interface Candidates {
  /** The part of the line that a candidate replaces. */
  from: number;
  to: number;
  options: readonly Candidate[];
}

export interface Split {
  /** The first word. */
  word: string;
  /** The rest after the first space; null: there is no space yet. */
  rest: string | null;
  restAt: number;
}

export function splitLine(text: string): Split {
  const [, before = '', word = '', space] = /^(\s*)(\S*)(\s?)/.exec(text) ?? [];
  const restAt = before.length + word.length + 1;
  return { word, rest: space === '' ? null : text.slice(restAt), restAt };
}

export function candidates(state: State, { line: { text, caret } }: CommandLine): Candidates {
  const { word, rest, restAt } = splitLine(text);
  const command = rest === null ? undefined : commandNamed(word);
  if (!command || rest === null || caret < restAt)
    return { from: 0, to: text.length, options: firstWords(state, text) };
  const { from, to, options } = command.complete?.(state, rest, caret - restAt) ?? { from: 0, to: 0, options: [] };
  return {
    from: from + restAt,
    to: to + restAt,
    options: options.map(({ insert, what }) => ({ kind: 'argument', insert, what })),
  };
}

interface Ranked {
  rank: number;
  candidate: Candidate;
}

function firstWords(state: State, text: string): Candidate[] {
  const typed = text.trim().toLowerCase();
  const { screen } = view(state);
  const commands = commandsFor(state).flatMap((command) => rankedCommand(typed, command));
  const actions = withCustomKeys(SCREEN_BINDINGS, state.customKeys)
    .filter((binding) => isOffered(binding, state))
    // Where a command has the same name, it can do more.
    .filter(({ on, label }) => on.includes(screen) && !COMMANDS.some(({ name }) => name === label))
    .filter(({ label }, at, all) => all.findIndex((other) => other.label === label) === at)
    .flatMap((binding) => rankedAction(typed, binding));
  // The best match first; of equal ones a command before an action.
  return [...commands, ...actions].sort((one, other) => one.rank - other.rank).map(({ candidate }) => candidate);
}

function rankedCommand(typed: string, command: Command): Ranked[] {
  const candidate: Candidate = { kind: 'command', command };
  if (command.aliases.includes(typed)) return [{ rank: -1, candidate }];
  const rank = fuzzyRank(typed, command.name);
  return rank === null ? [] : [{ rank, candidate }];
}

/** By its label, or by words of the label and the description. */
function rankedAction(typed: string, binding: NamedBinding): Ranked[] {
  const candidate: Candidate = { kind: 'action', binding };
  const rank = fuzzyRank(typed, binding.label);
  if (rank !== null) return [{ rank, candidate }];
  const text = `${binding.label} ${binding.meaning}`.toLowerCase();
  return typed.split(/\s+/).every((word) => text.includes(word)) ? [{ rank: WORDS, candidate }] : [];
}

/** After all matches of the name. */
const WORDS = 4;
