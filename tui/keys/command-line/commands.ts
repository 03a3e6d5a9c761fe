/** The commands of the command line, as data: completions, help and the manual list them. */
import { didYouMean } from '../../../config/nearest.js';
import { fuzzyFound } from '../../../console/fuzzy.js';
import { parseFilter, suggest, type Suggestion } from '../../../console/query/filter.js';
import { topWords } from '../../../console/query/top-terms.js';
import type { Completion, FilteredScreen } from '../../../console/query/types.js';
import { shortId } from '../../../console/columns/cell-text.js';
import { PERIODS, PLURALS } from '../../../daemon/api/top-words.js';
import { TOP_DIMENSIONS, TOP_WINDOWS, UUID_PATTERN } from '../../../daemon/api/vocabulary.js';
import { exportOf } from '../../state/export.js';
import { pathsFor } from '../../state/files.js';
import { applied } from '../../state/filtering.js';
import * as navigation from '../../state/navigation.js';
import { type Deed, deedOf } from '../../state/permitted.js';
import { refreshed } from '../../state/refreshing.js';
import type { SavedView } from '../../state/saved.js';
import * as views from '../../state/saved-views.js';
import { searched, searchIn } from '../../state/secret-search.js';
import { andThen, knownNames, type State, type Tab, type Transition } from '../../state/state.js';
import * as token from '../../state/token.js';
import { loadedTokens } from '../../state/tokens.js';
import * as tops from '../../state/top.js';
import { shown } from '../views.js';
import { showAccess, showSelf } from '../access.js';
import { isOffered } from '../binding.js';
import { chooseContext, quit, showHelp } from '../everywhere.js';

/** What is wrong with an argument, and where in it. */
export interface CommandProblem {
  message: string;
  at: number;
  length: number;
}

export interface Command {
  name: string;
  aliases: readonly string[];
  /** Placeholder of the argument; null: it takes none. */
  argument: string | null;
  /** The argument is one name, so that choosing a completion completes the command. */
  isName?: boolean;
  meaning: string;
  /** As of a binding. */
  needs?: Deed;
  /** Completions of the argument at the caret. */
  complete?(state: State, text: string, caret: number): Suggestion;
  /** @param text the argument, with the spaces around it. */
  run(state: State, text: string): Transition | CommandProblem;
}

/** A screen, and with an argument its filter. Without one the screen shows everything. */
const filtered = (name: FilteredScreen & Tab, aliases: readonly string[], meaning: string): Command => ({
  name,
  aliases,
  argument: '[FILTER]',
  meaning,
  needs: deedOf(name),
  complete: (state, text, caret) => suggest(text, caret, name, knownNames(state)),
  run(state, text) {
    const search = searchIn(text);
    if (search) return searched(state, search);
    const { problems, isComplete } = parseFilter(text, name, knownNames(state));
    const [problem] = problems;
    if (problem) return problem;
    if (!isComplete) return { message: 'the filter is incomplete', at: text.trimEnd().length, length: 0 };
    return andThen(applied(navigation.toTab(state, name), text.trim()), refreshed);
  },
});

const screen = (name: Tab, aliases: readonly string[], meaning: string): Command => ({
  name,
  aliases,
  argument: null,
  meaning,
  needs: deedOf(name),
  run: (state) => refreshed(navigation.toTab(state, name)),
});

/** Completions of an argument that is one name. */
const names =
  (namesOf: (state: State) => readonly Completion[]) =>
  (state: State, text: string): Suggestion => {
    const from = text.length - text.trimStart().length;
    return { from, to: text.length, options: fuzzyFound(text.trim(), namesOf(state), ({ insert }) => insert) };
  };

/** @param noun with its article, such as `a skin`. */
function unknownName(noun: string, text: string, known: readonly string[]): CommandProblem {
  const name = text.trim();
  const at = text.length - text.trimStart().length;
  const choices = known.length === 0 ? `there is no ${noun} yet` : `choose one of ${known.join(', ')}`;
  if (name === '') return { message: known.length === 0 ? choices : `which ${noun}? ${choices}`, at, length: 0 };
  const advice = didYouMean(name, known, choices);
  return { message: `there is no ${noun} ${JSON.stringify(name)}; ${advice}`, at, length: name.length };
}

const contextNames = (state: State): Completion[] =>
  (state.contexts ?? []).map(({ name, server }) => ({ insert: name, what: server }));

const viewNames = (state: State): Completion[] =>
  views.viewsOf(state).map(({ name, screen: of, filter }) => ({ insert: name, what: `${of} ${filter}`.trimEnd() }));

function onView(state: State, text: string, run: (view: SavedView) => Transition): Transition | CommandProblem {
  const view = views.viewsOf(state).find(({ name }) => name === text.trim());
  return view
    ? run(view)
    : unknownName(
        'view',
        text,
        viewNames(state).map(({ insert }) => insert),
      );
}

const skinNames = ({ skins }: State): Completion[] =>
  [...skins.all.keys()].map((name) => ({ insert: name, what: name === skins.current ? 'the current one' : '' }));

const tokenNames = (state: State): Completion[] =>
  loadedTokens(state).map(({ id, name }) => ({ insert: name ?? shortId(id), what: shortId(id) }));

/** Opens a token by its name, its ID, or the beginning of the ID, if it is loaded; any other one by the whole ID. */
function openToken(state: State, text: string): Transition | CommandProblem {
  const given = text.trim();
  const found = loadedTokens(state).filter(({ id, name }) => name === given || (given !== '' && id.startsWith(given)));
  const [first, ...others] = found;
  if (first && others.length === 0) return token.open(state, first.id, first);
  if (UUID_PATTERN.test(given)) return token.open(state, given, null);
  const at = text.length - text.trimStart().length;
  if (given === '') return { message: 'which token? give its name, or the beginning of its ID', at, length: 0 };
  const message = first
    ? `${found.length} tokens are called ${JSON.stringify(given)}; give the beginning of the ID`
    : `no loaded token is called ${JSON.stringify(given)}; search all tokens with :tokens ${given}`;
  return { message, at, length: given.length };
}

/** Without words, the rows of the last hour with the most failures, and no filter. */
function showTop(state: State, text: string): Transition | CommandProblem {
  const { by, window, filter, at } = topWords(text);
  const { problems, isComplete } = parseFilter(filter, 'top', knownNames(state));
  const [problem] = problems;
  if (problem) return { ...problem, at: problem.at + at };
  if (!isComplete) return { message: 'the filter is incomplete', at: text.trimEnd().length, length: 0 };
  const next = tops.asked(navigation.toTab(state, 'top'), {
    by: by ?? 'token',
    period: window ?? '1h',
    filter: filter.trim(),
  });
  return refreshed(next);
}

function topCompletions(state: State, text: string, caret: number): Suggestion {
  const { by, window, filter, at } = topWords(text.slice(0, caret));
  const { from, to, options } = suggest(filter, filter.length, 'top', knownNames(state));
  const begun = filter.slice(from, to);
  const isFirst = filter.slice(0, from).trim() === '' && !begun.includes(':');
  const words = [
    ...(by === null ? TOP_DIMENSIONS.map((insert) => ({ insert, what: PLURALS[insert] })) : []),
    ...(window === null ? TOP_WINDOWS.map((insert) => ({ insert, what: `the ${PERIODS[insert]}` })) : []),
  ].filter(({ insert }) => insert.startsWith(begun));
  return { from: from + at, to: to + at, options: [...(isFirst ? words : []), ...options] };
}

export const COMMANDS: readonly Command[] = [
  screen('overview', ['o'], 'show the overview'),
  filtered('tokens', ['t'], 'show all tokens, or those of a filter'),
  filtered('projects', ['p'], 'show all projects, or those of a filter'),
  filtered('audit', ['a'], 'show the audit log, or the records of a filter'),
  screen('cache', [], 'show the response cache'),
  filtered('events', ['e'], 'show live events, or those of a filter'),
  {
    name: 'top',
    aliases: [],
    argument: '[token|project|model|model_total] [5m|1h|24h] [FILTER]',
    meaning: 'show the busiest tokens, projects or models, such as :top model 24h project:web',
    needs: deedOf('top'),
    complete: topCompletions,
    run: showTop,
  },
  {
    name: 'token',
    aliases: [],
    argument: 'NAME|ID',
    isName: true,
    meaning: 'open a token',
    needs: deedOf('token'),
    complete: names(tokenNames),
    run: openToken,
  },
  {
    name: 'operators',
    aliases: ['op'],
    argument: null,
    meaning: 'show the operators: who has access, and with which role',
    needs: deedOf('operators'),
    run: (state) => showAccess(state, 'operators'),
  },
  {
    name: 'trusts',
    aliases: [],
    argument: null,
    meaning: 'show the trusts: whose JWTs are exchanged for tokens',
    needs: deedOf('trusts'),
    run: (state) => showAccess(state, 'trusts'),
  },
  {
    name: 'whoami',
    aliases: [],
    argument: null,
    meaning: 'show who is logged in, and what that allows',
    run: showSelf,
  },
  {
    name: 'ctx',
    aliases: ['context', 'c'],
    argument: '[NAME]',
    isName: true,
    meaning: 'switch to the daemon of a context, or list the contexts',
    complete: names(contextNames),
    run(state, text) {
      const name = text.trim();
      if (name === '') return chooseContext(state);
      // Until the contexts are loaded, connecting reports a wrong name.
      const isKnown = state.contexts?.some((context) => context.name === name) ?? true;
      if (isKnown) return navigation.toContext(state, name);
      return unknownName(
        'context',
        text,
        contextNames(state).map(({ insert }) => insert),
      );
    },
  },
  {
    name: 'save',
    aliases: [],
    argument: 'NAME',
    isName: true,
    meaning: 'save this list, with its filter and order, as a view of this context',
    complete: names(viewNames),
    run(state, text) {
      const name = text.trim();
      const at = text.length - text.trimStart().length;
      const why = name === '' ? 'save it under which name?' : views.whyNotSaved(state, name);
      return why === null ? views.saveView(state, name) : { message: why, at, length: name.length };
    },
  },
  {
    name: 'view',
    aliases: ['v'],
    argument: 'NAME',
    isName: true,
    meaning: 'show a saved view',
    complete: names(viewNames),
    run: (state, text) => onView(state, text, (view) => shown(state, view)),
  },
  {
    name: 'delete-view',
    aliases: [],
    argument: 'NAME',
    isName: true,
    meaning: 'delete a saved view',
    complete: names(viewNames),
    run: (state, text) => onView(state, text, ({ name }) => views.deleteView(state, name)),
  },
  {
    name: 'export',
    aliases: [],
    argument: '[FILE]',
    meaning: 'write this list, with its filter and columns, to a file: .csv, .json or .jsonl',
    complete: pathsFor,
    run(state, text) {
      const path = text.trim();
      const done = exportOf(state, path);
      const at = text.length - text.trimStart().length;
      return typeof done === 'string' ? { message: done, at, length: path.length } : done;
    },
  },
  {
    name: 'skin',
    aliases: [],
    argument: 'NAME',
    isName: true,
    meaning: 'show other colors until the end; theme.toml makes them permanent',
    complete: names(skinNames),
    run(state, text) {
      const name = text.trim();
      if (!state.skins.all.has(name)) return unknownName('skin', text, [...state.skins.all.keys()]);
      return [{ ...state, skins: { ...state.skins, current: name } }];
    },
  },
  { name: 'help', aliases: ['h'], argument: null, meaning: 'show the keys of this screen', run: showHelp },
  { name: 'quit', aliases: ['q'], argument: null, meaning: 'quit', run: quit },
];

/** The commands that are offered to the caller. */
export const commandsFor = (state: State): readonly Command[] =>
  COMMANDS.filter((command) => isOffered(command, state));

export const commandNamed = (word: string): Command | undefined =>
  COMMANDS.find(({ name, aliases }) => name === word || aliases.includes(word));

export const takesNothing = ({ argument }: Command) => argument === null;
/** Whether the command does something useful without an argument. */
export const runsAlone = ({ argument }: Command) => argument === null || argument.startsWith('[');
