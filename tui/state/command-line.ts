/** The command line: its input and its history. The commands themselves are in tui/keys/command-line. */
import { withoutSecrets } from '../../console/escape.js';
import { EMPTY_LINE, type Line, lineOf } from './line.js';
import { above } from './navigation.js';
import type { CommandLine } from './layers.js';
import type { State, Transition } from './state.js';

/** Maximum number of commands in the history, in memory and in its file. */
export const MAX_HISTORY = 200;
/** A longer line is not stored. */
const MAX_STORED_LENGTH = 500;

export function opened(state: State): Transition {
  const top: CommandLine = {
    kind: 'command',
    line: EMPTY_LINE,
    selected: 0,
    isChosen: false,
    recalled: null,
    draft: '',
    problem: null,
  };
  // The names of contexts are only needed here.
  return [above(state, top), { do: 'load', request: { of: 'contexts' } }];
}

/** The line was typed in: what was selected or recalled is forgotten. */
export const withLine = (top: CommandLine, line: Line): CommandLine => ({
  ...top,
  line,
  selected: 0,
  isChosen: false,
  recalled: null,
  problem: null,
});

/** Recalls an earlier command, or with -1 a later one; after the latest comes what was typed before. */
export function recalled(top: CommandLine, history: readonly string[], by: 1 | -1): CommandLine {
  const back = (top.recalled ?? 0) + by;
  if (back > history.length) return top;
  const draft = top.recalled === null ? top.line.text : top.draft;
  const text = back <= 0 ? draft : (history[history.length - back] ?? '');
  return { ...withLine(top, lineOf(text)), recalled: back <= 0 ? null : back, draft };
}

/** Adds a command to the history, unless it is the last one again, or may contain a secret. */
export function remembered(state: State, line: string): Transition {
  const text = line.trim();
  const isStorable = text !== '' && text.length <= MAX_STORED_LENGTH && withoutSecrets(text, []) === text;
  if (!isStorable || state.commandHistory.at(-1) === text) return [state];
  const commandHistory = [...state.commandHistory, text].slice(-MAX_HISTORY);
  return [
    { ...state, commandHistory },
    { do: 'remember', line: text },
  ];
}
