/** The keys that mean the same on every screen, or on every list. */
import { EXIT } from '../../console/failure.js';
import * as changing from '../state/changing.js';
import { tryAgain } from '../state/connection.js';
import { applied } from '../state/filtering.js';
import { movedBy, movedTo, page } from '../state/moving.js';
import * as navigation from '../state/navigation.js';
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
import * as tokens from '../state/tokens.js';
import { type Binding, type Spot, step } from './binding.js';
import { isOpen, toggled } from './feeds.js';

const EVERYWHERE: readonly Screen[] = [...TABS, 'token'];
/** Where the terminal itself is meant. */
const ANYWHERE: readonly Spot[] = [...EVERYWHERE, 'dialog', 'reveal', 'path', 'prompt', 'palette', 'help', 'contexts'];
const LISTS: readonly Screen[] = ['tokens', 'projects', 'audit', 'events'];
const SCROLLED: readonly Screen[] = [...LISTS, 'token'];

export const MOVING_BINDINGS: readonly Binding[] = [
  { keys: ['j', 'down'], on: SCROLLED, label: 'down', meaning: 'move down', run: (state) => movedBy(state, 1) },
  { keys: ['k', 'up'], on: SCROLLED, label: 'up', meaning: 'move up', run: (state) => movedBy(state, -1) },
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
    meaning: 'to the last; a log continues from there',
    run: (state) => movedTo(state, 'last'),
  },
];

const tabs: readonly Binding[] = TABS.map((tab, at) => ({
  keys: [String(at + 1)],
  on: EVERYWHERE,
  label: tab,
  meaning: `the screen ${at + 1}, ${tab}`,
  run: (state: State) => refreshed(navigation.toTab(state, tab)),
}));

export const EVERYWHERE_BINDINGS: readonly Binding[] = [
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
    meaning: 'the previous screen',
    run: (state) => refreshed(navigation.tabBy(state, -1)),
  },
  {
    keys: ['/'],
    on: LISTS,
    label: 'filter',
    meaning: 'filter the list; tab completes, escape restores the previous filter',
    footer: 6,
    run: navigation.promptForFilter,
  },
  {
    keys: ['u'],
    on: EVERYWHERE,
    label: 'undo',
    meaning: 'undo the last change, while the undo is offered',
    unless: (state) => (changing.isUndoable(state) ? whyNoChange(state) : changing.NOTHING_TO_UNDO),
    run: changing.undo,
  },
  {
    keys: [':'],
    on: EVERYWHERE,
    label: 'command',
    meaning: 'find an action by name',
    footer: 7,
    run: navigation.palette,
  },
  {
    keys: ['?'],
    on: EVERYWHERE,
    label: 'help',
    meaning: 'show the keys of this screen',
    footer: 9,
    isKept: true,
    run: step((state) => navigation.above(state, { kind: 'help', selected: 0 })),
  },
  {
    keys: ['p'],
    on: EVERYWHERE,
    label: 'pause',
    meaning: 'pause or resume updates',
    run: (state) => paused(state),
  },
  {
    keys: ['c'],
    on: EVERYWHERE,
    label: 'contexts',
    meaning: 'switch to another daemon',
    run: (state) => [
      navigation.above(state, { kind: 'contexts', all: null, early: [], selected: 0, failure: null }),
      { do: 'ask', question: { of: 'contexts' } },
    ],
  },
  {
    keys: ['ctrl+r', 'f5'],
    on: EVERYWHERE,
    label: 'refresh',
    meaning: 'refresh now, also after the management token was refused',
    run: (state) => refreshed(tryAgain(state)),
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
    keys: ['escape'],
    on: EVERYWHERE,
    label: 'back',
    meaning: 'cancel, clear marks, go back, or clear the filter',
    run: wayBack,
  },
  {
    keys: ['h', 'left'],
    on: EVERYWHERE,
    label: 'back',
    meaning: 'go back',
    run: (state) => cameFrom(state) ?? [saying(state, 'There is nothing to go back to; q quits')],
  },
  {
    keys: ['q'],
    on: EVERYWHERE,
    label: 'quit',
    labelNow: (state) => (isDeeper(state) ? 'back' : 'quit'),
    meaning: 'go back; on the first screen, quit',
    footer: 10,
    isKept: true,
    run: (state) => cameFrom(state) ?? quit(state),
  },
  {
    keys: ['ctrl+c'],
    on: EVERYWHERE,
    label: 'end',
    meaning: 'quit now',
    run: (state) => [state, { do: 'quit', code: EXIT.interrupted }],
  },
];

function paused(state: State): Step {
  const next = { ...state, isPaused: !state.isPaused };
  return next.isPaused ? [saying(next, 'Paused; p goes on')] : refreshed(saying(next, 'Goes on'));
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
