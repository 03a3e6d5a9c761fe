/** Keys that mean the same on every screen, or on every list. */
import { EXIT } from '../../console/failure.js';
import { listCommand } from '../../console/query/command.js';
import * as commandLine from '../state/command-line.js';
import { openChoice } from '../state/columns.js';
import { hasSessionEnded, tryAgain } from '../state/connection.js';
import { applied, screenOf } from '../state/filtering.js';
import { movedBy, movedTo, page } from '../state/moving.js';
import * as navigation from '../state/navigation.js';
import { deedOf } from '../state/permitted.js';
import { refreshed } from '../state/refreshing.js';
import {
  bulkActivity,
  isStoppable,
  withMessage,
  withQuitQuestion,
  type Screen,
  type State,
  type Transition,
  ACCESS_LISTS,
  SCREENS,
  TABS,
  view,
  DETAIL_SCREENS,
  whyBusy,
  whyNoChange,
} from '../state/state.js';
import * as tokens from '../state/tokens.js';
import * as undo from '../state/undo.js';
import { type Binding, firstKeyOf, type KeyScope, named } from './binding.js';
import { hasOpenDetail, toggleDetail } from './feeds.js';

/** Scopes of the keys for the terminal itself. */
const ANYWHERE: readonly KeyScope[] = [
  ...SCREENS,
  'dialog',
  'chooser',
  'waiting',
  'reveal',
  'path',
  'prompt',
  'command',
  'help',
  'search',
  'contexts',
  'columns',
  'notice',
];
const LISTS: readonly Screen[] = ['tokens', 'projects', 'audit', 'events', 'top'];
const SCROLLED: readonly Screen[] = [...LISTS, ...ACCESS_LISTS, ...DETAIL_SCREENS, 'overview'];

export const MOVING_BINDINGS = named('lists', [
  { keys: ['j', 'down'], on: SCROLLED, label: 'down', meaning: 'move down', run: (state) => movedBy(state, 1) },
  { keys: ['k', 'up'], on: SCROLLED, label: 'up', meaning: 'move up', run: (state) => movedBy(state, -1) },
  {
    keys: ['ctrl+d', 'pagedown', 'ctrl+f'],
    on: SCROLLED,
    label: 'page down',
    meaning: 'move down one page',
    run: (state) => movedBy(state, page(state)),
  },
  {
    keys: ['ctrl+u', 'pageup', 'ctrl+b'],
    on: SCROLLED,
    label: 'page up',
    meaning: 'move up one page',
    run: (state) => movedBy(state, -page(state)),
  },
  {
    keys: ['g', 'home'],
    on: SCROLLED,
    label: 'first',
    meaning: 'go to the first row',
    run: (state) => movedTo(state, 'first'),
  },
  {
    keys: ['G', 'end'],
    on: SCROLLED,
    label: 'last',
    meaning: 'go to the last row; a log then follows new rows',
    run: (state) => movedTo(state, 'last'),
  },
]);

const tabs: readonly Binding[] = TABS.map((tab, at) => ({
  keys: [String(at + 1)],
  on: SCREENS,
  label: tab,
  meaning: `go to screen ${at + 1}, ${tab}`,
  needs: deedOf(tab),
  run: (state: State) => refreshed(navigation.toTab(state, tab)),
}));

export const EVERYWHERE_BINDINGS = named('global', [
  ...tabs,
  {
    name: 'next-screen',
    keys: ['tab'],
    on: SCREENS,
    label: 'next',
    meaning: 'go to the next screen',
    run: (state) => refreshed(navigation.tabBy(state, 1)),
  },
  {
    name: 'previous-screen',
    keys: ['shift+tab'],
    on: SCREENS,
    label: 'previous',
    meaning: 'go to the previous screen',
    run: (state) => refreshed(navigation.tabBy(state, -1)),
  },
  {
    keys: ['/'],
    on: LISTS,
    label: 'filter',
    meaning: 'filter the list, with completion; escape restores the previous filter',
    footer: 6,
    run: navigation.promptForFilter,
  },
  {
    name: 'copy-list-command',
    keys: ['Y'],
    on: ['tokens', 'projects', 'audit'],
    label: 'copy command',
    meaning: "copy the command that lists the same to the terminal's clipboard",
    run: (state) => [state, { do: 'copy', text: listCommandOf(state), what: 'The command' }],
  },
  {
    keys: ['C'],
    on: LISTS,
    label: 'columns',
    meaning: 'choose the columns of the list',
    run: openChoice,
  },
  {
    keys: ['u'],
    on: SCREENS.filter((screen) => screen !== 'audit'), // There it undoes what is under the cursor.
    label: 'undo',
    meaning: 'undo the last change, or the one before it; asks first after 30 seconds',
    needs: 'undoBatch',
    whyDisabled: (state) => (undo.nextReversal(state, 'undo') ? whyNoChange(state) : undo.NOTHING_TO.undo),
    run: (state) => undo.revert(state, 'undo'),
  },
  {
    keys: ['U'],
    on: SCREENS,
    label: 'redo',
    meaning: 'redo what was undone',
    needs: 'undoBatch',
    whyDisabled: (state) => (undo.nextReversal(state, 'redo') ? whyNoChange(state) : undo.NOTHING_TO.redo),
    run: (state) => undo.revert(state, 'redo'),
  },
  {
    keys: [':'],
    on: SCREENS,
    label: 'command',
    meaning: 'enter a command, or find an action by its name',
    footer: 7,
    run: commandLine.opened,
  },
  {
    keys: ['?'],
    on: SCREENS,
    label: 'help',
    meaning: 'show the keys of this screen',
    footer: 9,
    isAlwaysShown: true,
    run: showHelp,
  },
  {
    keys: ['p'],
    on: SCREENS,
    label: 'pause',
    meaning: 'pause or resume updates',
    run: (state) => paused(state),
  },
  {
    keys: ['c'],
    on: SCREENS,
    label: 'contexts',
    meaning: 'switch to another daemon',
    run: chooseContext,
  },
  {
    keys: ['ctrl+r', 'f5'],
    on: SCREENS,
    label: 'refresh',
    meaning: 'refresh now; also retries what was refused, after a log-in',
    run: (state) => retried(state),
  },
  {
    keys: ['ctrl+l'],
    on: ANYWHERE,
    label: 'repaint',
    meaning: 'redraw the screen',
    run: (state) => [state, { do: 'repaint' }],
  },
  {
    keys: ['ctrl+z'],
    on: ANYWHERE,
    label: 'suspend',
    meaning: 'suspend to the shell; fg returns',
    run: (state) => [state, { do: 'suspend' }],
  },
  {
    name: 'cancel',
    keys: ['escape'],
    on: SCREENS,
    label: 'back',
    meaning: 'cancel, clear marks, go back, or clear the filter',
    run: escaped,
  },
  {
    keys: ['h', 'left'],
    on: SCREENS,
    label: 'back',
    meaning: 'go back',
    run: (state) =>
      goBack(state) ?? [withMessage(state, `Nothing to go back to; ${keyOf(state, 'global.quit')} quits`)],
  },
  {
    keys: ['q'],
    on: SCREENS,
    label: 'quit',
    labelNow: (state) => (canGoBack(state) ? 'back' : 'quit'),
    meaning: 'go back; on the first screen, quit (in the demo: asks first)',
    footer: 10,
    isAlwaysShown: true,
    run: (state) => goBack(state) ?? quitAfterQuestion(state),
  },
  {
    keys: ['ctrl+c'],
    on: SCREENS,
    label: 'quit now',
    meaning: 'quit now',
    run: (state) => [state, { do: 'quit', code: EXIT.interrupted }],
  },
]);

const keyOf = (state: State, action: string) => firstKeyOf(EVERYWHERE_BINDINGS, action, state);

function paused(state: State): Transition {
  const next = { ...state, isPaused: !state.isPaused };
  return next.isPaused
    ? [withMessage(next, `Paused; ${keyOf(state, 'global.pause')} resumes`)]
    : refreshed(withMessage(next, 'Resumed'));
}

/** After the end of a session, the context may have the secret of another one. */
function retried(state: State): Transition {
  const { context } = state.target;
  if (hasSessionEnded(state) && context !== null) return navigation.toContext(state, context);
  return refreshed(tryAgain(state));
}

const canGoBack = (state: State) => hasOpenDetail(state) || state.views.length > 1;

/** Closes the details, or goes back to the previous view; undefined if there is neither. */
function goBack(state: State): Transition | undefined {
  if (hasOpenDetail(state)) return toggleDetail(state);
  return state.views.length > 1 ? refreshed(navigation.back(state)) : undefined;
}

function escaped(state: State): Transition {
  if (bulkActivity(state) !== null)
    return isStoppable(state) ? stopped(state) : [withMessage(state, whyBusy(state) ?? '', 'bad')];
  const isList = view(state).screen === 'tokens';
  if (isList && (state.tokens.marks.size > 0 || state.tokens.rangeFrom !== null)) return [tokens.unmarked(state)];
  const back = goBack(state);
  if (back) return back;
  return (navigation.filterOf(state) ?? '') === ''
    ? [withMessage(state, `${keyOf(state, 'global.quit')} quits`)]
    : applied(state, '');
}

/** Stops a bulk operation. Requests in flight are still completed and reported. */
function stopped(state: State): Transition {
  const { tokens: list } = state;
  const next = { ...state, progress: null, tokens: { ...list, collecting: null } };
  return [withMessage(next, list.collecting === null ? 'Stopping' : 'Stopped'), { do: 'stop' }];
}

/** The command that lists what the screen lists, with its filter and order. */
function listCommandOf(state: State): string {
  const { tokens: list, target } = state;
  const screen = screenOf(state) ?? 'tokens';
  const sort = screen === 'tokens' ? `${list.isDescending ? '-' : ''}${list.order}` : null;
  return listCommand({ screen, filter: navigation.filterOf(state) ?? '', sort, context: target.context });
}

export function showHelp(state: State): Transition {
  return [navigation.above(state, { kind: 'help', selected: 0, search: null })];
}

export function chooseContext(state: State): Transition {
  return [
    navigation.above(state, { kind: 'contexts', all: null, queuedKeys: [], selected: 0, failure: null }),
    { do: 'load', request: { of: 'contexts' } },
  ];
}

/** `q` goes back on most screens, so one press too many must not stop what ends with the terminal UI. */
function quitAfterQuestion(state: State): Transition {
  const { quitEnds, message } = state;
  if (quitEnds === null || message?.asksToQuit) return quit(state);
  return [withQuitQuestion(state, `Press ${keyOf(state, 'global.quit')} again to quit, which also stops ${quitEnds}`)];
}

/** Quits, unless a bulk change would be left half done. */
export function quit(state: State): Transition {
  const what = bulkActivity(state);
  if (what === null || what === 'Marking') return [state, { do: 'quit', code: EXIT.done }];
  return [withMessage(state, `${whyBusy(state) ?? ''}; ^c quits anyway`, 'bad')];
}
