/** Keys of the command line. */
import { didYouMean } from '../../../config/nearest.js';
import { recalled, remembered, withLine } from '../../state/command-line.js';
import { withCommandLine } from '../../state/files.js';
import { lineOf } from '../../state/line.js';
import { closed } from '../../state/navigation.js';
import type { CommandLine } from '../../state/layers.js';
import { whyNotPermitted } from '../../state/permitted.js';
import { andThen, type State, type Transition, withLayer } from '../../state/state.js';
import { act, type Binding, changeLayer, named, onLayer } from '../binding.js';
import { type Candidate, candidates, splitLine } from './candidates.js';
import { type Command, commandNamed, commandsFor, type CommandProblem, runsAlone, takesNothing } from './commands.js';

function entered(state: State, top: CommandLine): Transition {
  const { word, rest, restAt } = splitLine(top.line.text);
  const { options } = candidates(state, top);
  const chosen = options[top.selected];
  if (top.isChosen && chosen) return taken(state, top, chosen);
  if (word === '') return [closed(state)];
  const command = commandNamed(word);
  if (command) return ran(state, top, command, rest ?? '', restAt);
  const [first] = options;
  return first ? taken(state, top, first) : [withProblem(state, top, unknown(state, top.line.text, word))];
}

function unknown(state: State, text: string, word: string): CommandProblem {
  const names = commandsFor(state).map(({ name }) => name);
  const advice = didYouMean(word, names, ':help lists the keys');
  const at = text.indexOf(word);
  return { message: `there is no command ${JSON.stringify(word)}; ${advice}`, at, length: word.length };
}

/** Runs a candidate if it is complete; otherwise it goes into the line. */
function taken(state: State, top: CommandLine, candidate: Candidate): Transition {
  if (candidate.kind === 'action') {
    const { binding } = candidate;
    return andThen(remembered(closed(state), binding.label), (next) => act(next, binding));
  }
  const next = inserted(state, top, candidate);
  const line = splitLine(next.line.text);
  const command = commandNamed(line.word);
  const isWhole = candidate.kind === 'command' ? runsAlone(candidate.command) : command?.isName;
  return command && isWhole ? ran(state, next, command, line.rest ?? '', line.restAt) : withCommandLine(state, next);
}

/** The line with a candidate in it. */
function inserted(state: State, top: CommandLine, candidate: Candidate): CommandLine {
  const { from, to } = candidates(state, top);
  const before = top.line.text.slice(0, from) + textOf(candidate);
  const text = before + top.line.text.slice(to);
  return withLine(top, { ...lineOf(text), caret: before.length });
}

function textOf(candidate: Candidate): string {
  if (candidate.kind === 'argument') return candidate.insert;
  if (candidate.kind === 'action') return candidate.binding.label;
  return takesNothing(candidate.command) ? candidate.command.name : `${candidate.command.name} `;
}

function ran(state: State, top: CommandLine, command: Command, argument: string, at: number): Transition {
  const why = command.needs === undefined ? null : whyNotPermitted(state, command.needs);
  if (why !== null) return [withProblem(state, top, { message: why, at: 0, length: command.name.length })];
  const extra = takesNothing(command) ? argument.trim() : '';
  const done: Transition | CommandProblem =
    extra === ''
      ? command.run(closed(state), argument)
      : { message: `${command.name} takes no argument`, at: argument.indexOf(extra), length: extra.length };
  if (!isTransition(done)) return [withProblem(state, top, { ...done, at: at + done.at })];
  return andThen(done, (next) => remembered(next, top.line.text));
}

const isTransition = (done: Transition | CommandProblem): done is Transition => Array.isArray(done);

/** Shows what is wrong, with the caret after it. */
function withProblem(state: State, top: CommandLine, { message, at, length }: CommandProblem): State {
  const { text } = top.line;
  const caret = Math.min(text.length, at + length);
  return withLayer(state, { ...top, line: { text, caret }, isChosen: false, problem: message });
}

const moved =
  (by: number) =>
  (top: CommandLine, state: State): CommandLine => {
    const last = Math.max(0, candidates(state, top).options.length - 1);
    return { ...top, selected: Math.max(0, Math.min(last, top.selected + by)), isChosen: true };
  };

/** Up goes back in the history; while candidates are chosen, to the one above. */
function up(top: CommandLine, state: State): CommandLine {
  if (top.selected > 0) return moved(-1)(top, state);
  if (state.commandHistory.length === 0) return { ...top, problem: 'There is no earlier command yet' };
  return recalled(top, state.commandHistory, 1);
}

const down = (top: CommandLine, state: State): CommandLine =>
  top.recalled !== null && !top.isChosen ? recalled(top, state.commandHistory, -1) : moved(1)(top, state);

function completed(state: State, top: CommandLine): Transition {
  const candidate = candidates(state, top).options[top.selected];
  return candidate ? withCommandLine(state, inserted(state, top, candidate)) : [state];
}

const PAGE = 8;

const ofCommandLine: readonly Binding[] = [
  {
    keys: ['enter'],
    on: ['command'],
    label: 'run',
    meaning: 'run the command, or what is selected',
    footer: 1,
    run: onLayer('command', entered),
  },
  {
    keys: ['tab'],
    on: ['command'],
    label: 'complete',
    meaning: 'complete the word',
    footer: 2,
    run: onLayer('command', completed),
  },
  {
    keys: ['up'],
    on: ['command'],
    label: 'earlier',
    meaning: 'recall an earlier command; in the list, move up',
    footer: 3,
    run: changeLayer('command', up),
  },
  {
    keys: ['down'],
    on: ['command'],
    label: 'down',
    meaning: 'select the next completion; among earlier commands, go to a later one',
    run: changeLayer('command', down),
  },
  {
    name: 'next',
    keys: ['ctrl+n'],
    on: ['command'],
    label: 'down',
    meaning: 'select the next completion',
    run: changeLayer('command', moved(1)),
  },
  {
    keys: ['ctrl+p', 'shift+tab'],
    on: ['command'],
    label: 'up',
    meaning: 'select the previous completion',
    run: changeLayer('command', moved(-1)),
  },
  {
    keys: ['pagedown'],
    on: ['command'],
    label: 'page down',
    meaning: 'move down one page of completions',
    run: changeLayer('command', moved(PAGE)),
  },
  {
    keys: ['pageup'],
    on: ['command'],
    label: 'page up',
    meaning: 'move up one page of completions',
    run: changeLayer('command', moved(-PAGE)),
  },
  {
    keys: ['escape', 'ctrl+c'],
    on: ['command'],
    label: 'back',
    meaning: 'go back',
    footer: 4,
    closesLayer: true,
    run: (state) => [closed(state)],
  },
];

export const COMMAND_LINE_BINDINGS = named('command', ofCommandLine);
