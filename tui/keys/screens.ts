/** The keys of the screens. */
import * as changing from '../state/changing.js';
import * as feeds from '../state/feed.js';
import * as forms from '../state/forms.js';
import { applied, filterOfProject } from '../state/filtering.js';
import { tryAgain } from '../state/connection.js';
import { movedBy, movedTo, page } from '../state/moving.js';
import * as navigation from '../state/navigation.js';
import * as projects from '../state/projects.js';
import { refreshed } from '../state/refreshing.js';
import {
  goingOn,
  isStoppable,
  saying,
  type Screen,
  type State,
  type Step,
  TABS,
  view,
  whyBusy,
  whyNoChange,
} from '../state/state.js';
import * as token from '../state/token.js';
import * as tokens from '../state/tokens.js';
import * as windows from '../state/window.js';
import { shellWord } from '../../console/escape.js';
import { EXIT } from '../../console/failure.js';
import { shortId } from '../../console/views.js';
import type { Binding, Spot } from './binding.js';

const EVERYWHERE: readonly Screen[] = [...TABS, 'token'];
/** Where the terminal itself is meant. */
const ANYWHERE: readonly Spot[] = [...EVERYWHERE, 'dialog', 'reveal', 'path', 'prompt', 'palette', 'help', 'contexts'];
const LISTS: readonly Screen[] = ['tokens', 'projects', 'audit', 'events'];
const SCROLLED: readonly Screen[] = [...LISTS, 'token'];

const step =
  (change: (state: State) => State) =>
  (state: State): Step => [change(state)];

const moving: readonly Binding[] = [
  { keys: ['j', 'down'], on: SCROLLED, label: 'down', meaning: 'one down', run: (state) => movedBy(state, 1) },
  { keys: ['k', 'up'], on: SCROLLED, label: 'up', meaning: 'one up', run: (state) => movedBy(state, -1) },
  {
    keys: ['ctrl+d', 'pagedown', 'ctrl+f'],
    on: SCROLLED,
    label: 'page down',
    meaning: 'a page down',
    run: (state) => movedBy(state, page(state)),
  },
  {
    keys: ['ctrl+u', 'pageup', 'ctrl+b'],
    on: SCROLLED,
    label: 'page up',
    meaning: 'a page up',
    run: (state) => movedBy(state, -page(state)),
  },
  {
    keys: ['g', 'home'],
    on: SCROLLED,
    label: 'first',
    meaning: 'to the first',
    run: (state) => movedTo(state, 'first'),
  },
  {
    keys: ['G', 'end'],
    on: SCROLLED,
    label: 'last',
    meaning: 'to the last; a log is followed from there',
    run: (state) => movedTo(state, 'last'),
  },
];

/** What a key acts on, where a screen shows one token or many. */
function tokensMeant(state: State) {
  if (view(state).screen !== 'token') return tokens.meant(state);
  const { token: it, isGone } = state.token ?? { token: null, isGone: false };
  return it && !isGone ? [it] : [];
}
function noToken(state: State): string | null {
  if (tokensMeant(state).length > 0) return null;
  if (view(state).screen !== 'token') return noRow(state);
  return state.token?.isGone ? 'This token is not there any more' : 'It is not read yet';
}
/** Its id is known before it is. */
function idsMeant(state: State): readonly string[] {
  const shown = view(state);
  return shown.screen === 'token' ? [shown.id] : tokensMeant(state).map(({ id }) => id);
}
/** The project of the token that is looked at, or that the cursor is on. */
function projectMeant(state: State): string | undefined {
  const { screen } = view(state);
  if (screen === 'token') return state.token?.token?.project_id;
  return screen === 'tokens' ? tokens.underCursor(state)?.project_id : undefined;
}
const noTokenUnderCursor = (state: State) => (tokens.underCursor(state) ? null : noRow(state));
const noRow = ({ tokens: { window } }: State) =>
  windows.isHeardOf(window) && windows.lengthOf(window) === 0 ? 'There is no token here' : 'It is not read yet';
const noProject = (state: State) => (projects.underCursor(state) ? null : 'There is no project here');
const first =
  (...reasons: ((state: State) => string | null)[]) =>
  (state: State) =>
    reasons.reduce<string | null>((why, reason) => why ?? reason(state), null);

/** Runs with the project under the cursor. */
const onProject =
  (act: (state: State, project: NonNullable<ReturnType<typeof projects.underCursor>>) => Step) =>
  (state: State): Step => {
    const project = projects.underCursor(state);
    return project ? act(state, project) : [state];
  };

const ofTokens: readonly Binding[] = [
  {
    keys: ['enter', 'l', 'right'],
    on: ['tokens'],
    label: 'detail',
    meaning: 'look at the token closely',
    footer: 1,
    unless: noTokenUnderCursor,
    run(state) {
      const it = tokens.underCursor(state);
      return it ? token.open(state, it.id, it) : [state];
    },
  },
  {
    keys: ['x'],
    on: ['tokens', 'token'],
    label: 'revoke',
    meaning: 'revoke it, or the marked ones, after a question',
    footer: 2,
    unless: first(whyNoChange, noToken),
    run: (state) => changing.revoke(state, tokensMeant(state)),
  },
  {
    keys: ['a'],
    on: ['tokens', 'token'],
    label: 'reactivate',
    meaning: 'bring it back at once, or the marked ones after a question',
    footer: 3,
    unless: first(whyNoChange, noToken),
    run: (state) => changing.reactivate(state, tokensMeant(state)),
  },
  {
    keys: ['n'],
    on: ['tokens', 'token', 'overview'],
    label: 'new',
    meaning: 'issue a new token',
    footer: 4,
    unless: whyNoChange,
    run: (state) => forms.newToken(state, projectMeant(state)),
  },
  {
    keys: ['space'],
    on: ['tokens'],
    label: 'mark',
    meaning: 'mark it or take its mark away, and go on',
    footer: 5,
    unless: noTokenUnderCursor,
    run: markAndMove,
  },
  {
    keys: ['v'],
    on: ['tokens'],
    label: 'range',
    meaning: 'mark from here to where it is pressed again',
    unless: noTokenUnderCursor,
    run: tokens.rangeMarked,
  },
  {
    keys: ['ctrl+a'],
    on: ['tokens'],
    label: 'mark all',
    meaning: 'mark all that the filter lets through',
    unless: tokens.whyNotEvery,
    run: (state) => tokens.everyTokenAsked(state, 'marks'),
  },
  {
    keys: ['*'],
    on: ['tokens'],
    label: 'invert',
    meaning: 'mark what is not marked of what the filter lets through, and the other way round',
    unless: tokens.whyNotEvery,
    run: (state) => tokens.everyTokenAsked(state, 'inverse'),
  },
  {
    keys: ['y'],
    on: ['tokens', 'token'],
    label: 'copy id',
    meaning: "send the id to the terminal's clipboard",
    unless: (state) => (idsMeant(state).length === 0 ? noToken(state) : null),
    run(state) {
      const ids = idsMeant(state);
      return [state, { do: 'copy', text: ids.join('\n'), what: ids.length === 1 ? 'The id' : `${ids.length} ids` }];
    },
  },
  {
    keys: ['Y'],
    on: ['tokens', 'token'],
    label: 'copy command',
    meaning: "send the command line that shows the same to the terminal's clipboard",
    run: (state) => [state, { do: 'copy', text: commandLine(state), what: 'The command line' }],
  },
];

function markAndMove(state: State): Step {
  const [marked] = tokens.marked(state);
  return movedBy(marked, 1);
}

/** What shows the same at the command line. */
export function commandLine(state: State): string {
  const shown = view(state);
  const context = state.place.context === null ? '' : ` -c ${shellWord(state.place.context)}`;
  if (shown.screen === 'token') return `llmp${context} token get ${shown.id}`;
  const it = tokens.underCursor(state);
  return it ? `llmp${context} token get ${shortId(it.id)}` : `llmp${context} token list`;
}

const ofProjects: readonly Binding[] = [
  {
    keys: ['enter', 'l', 'right'],
    on: ['projects'],
    label: 'its tokens',
    meaning: 'its tokens',
    footer: 1,
    unless: noProject,
    run: onProject((state, project) => {
      const filter = filterOfProject(state, project);
      return refreshed(tokens.listed(navigation.opened(state, { screen: 'tokens' }), { filter }));
    }),
  },
  {
    keys: ['n'],
    on: ['projects'],
    label: 'new',
    meaning: 'make a new project',
    footer: 2,
    unless: whyNoChange,
    run: forms.newProject,
  },
  {
    keys: ['N'],
    on: ['projects'],
    label: 'new token',
    meaning: 'issue a new token of this project',
    unless: first(whyNoChange, noProject),
    run: onProject((state, { id }) => forms.newToken(state, id)),
  },
  {
    keys: ['a'],
    on: ['projects'],
    label: 'activate',
    meaning: 'let its tokens through again',
    footer: 3,
    unless: first(whyNoChange, noProject),
    run: onProject((state, project) => changing.projectActive(state, project, true)),
  },
  {
    keys: ['d'],
    on: ['projects'],
    label: 'deactivate',
    meaning: 'let none of its tokens through, after a question',
    footer: 4,
    unless: first(whyNoChange, noProject),
    run: onProject((state, project) => changing.projectActive(state, project, false)),
  },
  {
    keys: ['X'],
    on: ['projects'],
    label: 'revoke all',
    meaning: 'revoke all of its tokens, after a question',
    footer: 5,
    unless: first(whyNoChange, noProject),
    run: onProject(changing.revokeAll),
  },
  {
    keys: ['e'],
    on: ['projects'],
    label: 'rename',
    meaning: 'give it another name',
    unless: first(whyNoChange, noProject),
    run: onProject(forms.rename),
  },
  {
    keys: ['K'],
    on: ['projects'],
    label: 'set key',
    meaning: 'give it another key of the provider',
    unless: first(whyNoChange, noProject),
    run: onProject(forms.setKey),
  },
  {
    keys: ['y'],
    on: ['projects'],
    label: 'copy id',
    meaning: "send the id to the terminal's clipboard",
    unless: noProject,
    run: onProject((state, { id }) => [state, { do: 'copy', text: id, what: 'The id' }]),
  },
];

const ofFeeds: readonly Binding[] = [
  {
    keys: ['enter', 'l', 'right'],
    on: ['audit', 'events'],
    label: 'detail',
    meaning: 'look at it closely, or no longer',
    footer: 1,
    unless: nothingHere,
    run: toggled,
  },
  {
    keys: ['t'],
    on: ['audit', 'events'],
    label: 'its token',
    meaning: 'the token that it is about',
    footer: 2,
    unless: first(nothingHere, (state) => (tokenOfFeed(state) === null ? 'It is about no token' : null)),
    run(state) {
      const id = tokenOfFeed(state);
      return id === null ? [state] : token.open(state, id, null);
    },
  },
  {
    keys: ['y'],
    on: ['audit', 'events'],
    label: 'copy id',
    meaning: "send the id of the request, or of the record, to the terminal's clipboard",
    unless: nothingHere,
    run: (state) => [state, { do: 'copy', text: idOfFeed(state), what: 'The id' }],
  },
];

function toggled(state: State): Step {
  const { screen } = view(state);
  if (screen === 'audit') return [{ ...state, audit: feeds.toggled(state.audit) }];
  return [{ ...state, events: feeds.toggled(state.events) }];
}

/** The one that is looked at closely, or else the one under the cursor. */
function itemUnderCursor({ audit, events, ...state }: State) {
  return view({ audit, events, ...state }).screen === 'audit'
    ? (audit.opened ?? feeds.underCursor(audit))
    : (events.opened ?? feeds.underCursor(events));
}
function nothingHere(state: State): string | null {
  return itemUnderCursor(state) ? null : 'There is nothing here';
}
const tokenOfFeed = (state: State) => itemUnderCursor(state)?.token_id ?? null;
/** That of a request, where it has one, is what clients were told as well. */
const idOfFeed = (state: State) => itemUnderCursor(state)?.request_id ?? itemUnderCursor(state)?.id ?? '';

const ofCache: readonly Binding[] = [
  {
    keys: ['x'],
    on: ['cache'],
    label: 'purge',
    meaning: 'remove kept answers; how many is told before',
    footer: 1,
    unless: (state) =>
      state.cache.cache?.backend === 'off' ? 'The cache is off: HTTP_CACHE_ENABLED' : whyNoChange(state),
    run: forms.purge,
  },
];

const sorting: readonly Binding[] = [
  { keys: ['s'], on: ['tokens'], label: 'sort', meaning: 'sort by the next column', footer: 8, run: tokens.ordered },
  { keys: ['S'], on: ['tokens'], label: 'reverse', meaning: 'sort the other way round', run: tokens.reversed },
  {
    keys: ['s'],
    on: ['projects'],
    label: 'sort',
    meaning: 'sort by the next column',
    footer: 8,
    run: step(projects.ordered),
  },
  {
    keys: ['S'],
    on: ['projects'],
    label: 'reverse',
    meaning: 'sort the other way round',
    run: step((state) => projects.arranged(state, { isDescending: !state.projects.isDescending })),
  },
];

const tabs: readonly Binding[] = TABS.map((tab, at) => ({
  keys: [String(at + 1)],
  on: EVERYWHERE,
  label: tab,
  meaning: `the screen ${at + 1}, ${tab}`,
  run: (state: State) => refreshed(navigation.toTab(state, tab)),
}));

const everywhere: readonly Binding[] = [
  ...tabs,
  {
    keys: ['tab'],
    on: EVERYWHERE,
    label: 'next',
    meaning: 'the next screen',
    run: (state) => refreshed(navigation.tabBy(state, 1)),
  },
  {
    keys: ['shift+tab'],
    on: EVERYWHERE,
    label: 'before',
    meaning: 'the screen before',
    run: (state) => refreshed(navigation.tabBy(state, -1)),
  },
  {
    keys: ['/'],
    on: LISTS,
    label: 'filter',
    meaning: 'show only what fits; tab completes, escape brings back what was',
    footer: 6,
    run: navigation.promptForFilter,
  },
  {
    keys: ['u'],
    on: EVERYWHERE,
    label: 'undo',
    meaning: 'take back the last change, as long as that is offered',
    unless: (state) => (changing.isUndoable(state) ? whyNoChange(state) : changing.NOTHING_TO_UNDO),
    run: changing.undo,
  },
  {
    keys: [':'],
    on: EVERYWHERE,
    label: 'command',
    meaning: 'all that can be done here, by name',
    footer: 7,
    run: navigation.palette,
  },
  {
    keys: ['?'],
    on: EVERYWHERE,
    label: 'help',
    meaning: 'the keys that mean something here',
    footer: 9,
    isKept: true,
    run: step((state) => navigation.above(state, { kind: 'help', selected: 0 })),
  },
  {
    keys: ['p'],
    on: EVERYWHERE,
    label: 'pause',
    meaning: 'let what is shown stand still, or go on',
    run: (state) => paused(state),
  },
  {
    keys: ['c'],
    on: EVERYWHERE,
    label: 'contexts',
    meaning: 'go to another daemon',
    run: (state) => [
      navigation.above(state, { kind: 'contexts', all: null, early: [], selected: 0, failure: null }),
      { do: 'ask', question: { of: 'contexts' } },
    ],
  },
  {
    keys: ['ctrl+r', 'f5'],
    on: EVERYWHERE,
    label: 'refresh',
    meaning: 'ask again now, also after the management token was refused',
    run: (state) => refreshed(tryAgain(state)),
  },
  {
    keys: ['ctrl+l'],
    on: ANYWHERE,
    label: 'repaint',
    meaning: 'paint the whole screen anew',
    run: (state) => [state, { do: 'repaint' }],
  },
  {
    keys: ['ctrl+z'],
    on: ANYWHERE,
    label: 'suspend',
    meaning: 'back to the shell; fg comes back here',
    run: (state) => [state, { do: 'suspend' }],
  },
  {
    keys: ['escape'],
    on: EVERYWHERE,
    label: 'back',
    meaning: 'stop what goes on; take away marks; back; take away the filter: the first of these that there is',
    run: wayBack,
  },
  {
    keys: ['h', 'left'],
    on: EVERYWHERE,
    label: 'back',
    meaning: 'back to where one came from',
    run: (state) => cameFrom(state) ?? [saying(state, 'There is nothing to go back to; q quits')],
  },
  {
    keys: ['q'],
    on: EVERYWHERE,
    label: 'quit',
    labelNow: (state) => (isDeeper(state) ? 'back' : 'quit'),
    meaning: 'back, and from the first screen out',
    footer: 10,
    isKept: true,
    run: (state) => cameFrom(state) ?? quit(state),
  },
  {
    keys: ['ctrl+c'],
    on: EVERYWHERE,
    label: 'end',
    meaning: 'end it now',
    run: (state) => [state, { do: 'quit', code: EXIT.interrupted }],
  },
];

function paused(state: State): Step {
  const next = { ...state, isPaused: !state.isPaused };
  return next.isPaused ? [saying(next, 'Paused; p goes on')] : refreshed(saying(next, 'Goes on'));
}

function isOpen(state: State): boolean {
  const { screen } = view(state);
  return (screen === 'audit' ? state.audit.opened : screen === 'events' ? state.events.opened : null) !== null;
}
const isDeeper = (state: State) => isOpen(state) || state.views.length > 1;

/** Back to where one came from; undefined where that is nowhere. */
function cameFrom(state: State): Step | undefined {
  if (isOpen(state)) return toggled(state);
  return state.views.length > 1 ? refreshed(navigation.back(state)) : undefined;
}

function wayBack(state: State): Step {
  if (goingOn(state) !== null)
    return isStoppable(state) ? stopped(state) : [saying(state, whyBusy(state) ?? '', 'bad')];
  const isList = view(state).screen === 'tokens';
  if (isList && (state.tokens.marks.size > 0 || state.tokens.rangeFrom !== null)) return [tokens.unmarked(state)];
  const back = cameFrom(state);
  if (back) return back;
  return (navigation.filterOf(state) ?? '') === '' ? [saying(state, 'q quits')] : applied(state, '');
}

/** What is on its way to the daemon already is still made, and told of. */
function stopped(state: State): Step {
  const { tokens: list } = state;
  const next = { ...state, progress: null, tokens: { ...list, collecting: null } };
  return [saying(next, list.collecting === null ? 'Stopping' : 'Stopped'), { do: 'stop' }];
}

function quit(state: State): Step {
  const what = goingOn(state);
  if (what === null || what === 'Marking') return [state, { do: 'quit', code: EXIT.done }];
  return [saying(state, `${whyBusy(state) ?? ''}; ^c ends all the same`, 'bad')];
}

export const SCREEN_BINDINGS: readonly Binding[] = [
  ...ofTokens,
  ...ofProjects,
  ...ofFeeds,
  ...ofCache,
  ...sorting,
  ...moving,
  ...everywhere,
];
