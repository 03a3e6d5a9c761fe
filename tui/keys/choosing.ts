/** Keys of the lists in layers: help, and the list of contexts. */
import * as navigation from '../state/navigation.js';
import type { Layer } from '../state/layers.js';
import { layer, withMessage, type State, type Transition, view, withLayer } from '../state/state.js';
import { EMPTY_LINE } from '../state/line.js';
import {
  act,
  type Binding,
  changeLayer,
  isOffered,
  keyShown,
  named,
  type NamedBinding,
  onLayer,
  withCustomKeys,
} from './binding.js';
import { SCREEN_BINDINGS } from './screens.js';

type ChoiceLayer = Extract<Layer, { kind: 'help' | 'contexts' }>;

const isChoice = (top: Layer | undefined): top is ChoiceLayer => top?.kind === 'help' || top?.kind === 'contexts';

/** The keys of the screen below. */
function keysOfScreen(state: State): readonly NamedBinding[] {
  const { screen } = view(state);
  return withCustomKeys(SCREEN_BINDINGS, state.customKeys).filter(
    (binding) => binding.on.includes(screen) && isOffered(binding, state) && !binding.isUnlisted?.(state),
  );
}

/** The entries of help: the keys of the screen below, or those that a search finds. */
export function choices(state: State): readonly NamedBinding[] {
  const words = searchWords(state);
  return keysOfScreen(state).filter(({ keys, label, meaning }) =>
    hasWords(`${keys.map((key) => keyShown(key, true)).join(' ')} ${label} ${meaning}`, words),
  );
}

/** The words that are searched in help, in lower case. */
export function searchWords(state: State): readonly string[] {
  const top = layer(state);
  const typed = top?.kind === 'help' ? (top.search?.text ?? '') : '';
  return typed
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
}

export function hasWords(text: string, words: readonly string[]): boolean {
  const lower = text.toLowerCase();
  return words.every((word) => lower.includes(word));
}

export const chosenAt = (state: State, selected: number) => Math.min(selected, choices(state).length - 1);

const lengthOf = (state: State, top: ChoiceLayer) =>
  top.kind === 'contexts' ? (top.all?.length ?? 0) : choices(state).length;

function selectedBy(by: number) {
  return (state: State): Transition => {
    const top = layer(state);
    if (!isChoice(top)) return [state];
    const selected = Math.max(0, Math.min(lengthOf(state, top) - 1, top.selected + by));
    return [withLayer(state, { ...top, selected })];
  };
}

/** Runs the selected entry of help. */
const runChosen = onLayer('help', (state, { selected }) => {
  const binding = choices(state)[selected];
  return binding ? act(navigation.closed(state), binding) : [withMessage(state, 'No matching command', 'bad')];
});

/** Ends the search. The cursor stays on its line. */
const allShown = changeLayer('help', (top, state) => {
  const found = choices(state)[top.selected];
  const at = keysOfScreen(state).findIndex(({ action }) => action === found?.action);
  return { ...top, search: null, selected: Math.max(0, at) };
});

const switchToChosen = onLayer('contexts', (state, { all, selected }) => {
  const chosen = all?.[selected];
  return chosen
    ? navigation.toContext(navigation.closed(state), chosen.name)
    : [withMessage(state, 'No context selected')];
});

const close = (state: State): Transition => [navigation.closed(state)];
const FAR = Number.MAX_SAFE_INTEGER;
const PAGE = 10;

const LISTS = ['help', 'contexts'] as const;

const ofLists: readonly Binding[] = [
  { keys: ['enter'], on: ['help'], label: 'run', meaning: 'run the selected command', footer: 1, run: runChosen },
  {
    keys: ['enter'],
    on: ['contexts'],
    label: 'switch',
    meaning: 'switch to that daemon',
    footer: 1,
    run: switchToChosen,
  },
  {
    keys: ['down', 'j', 'ctrl+n', 'tab'],
    on: LISTS,
    label: 'down',
    meaning: 'move down',
    footer: 2,
    run: selectedBy(1),
  },
  { keys: ['up', 'k', 'ctrl+p', 'shift+tab'], on: LISTS, label: 'up', meaning: 'move up', run: selectedBy(-1) },
  {
    keys: ['pagedown', 'ctrl+d'],
    on: LISTS,
    label: 'page down',
    meaning: 'move down one page',
    run: selectedBy(PAGE),
  },
  { keys: ['pageup', 'ctrl+u'], on: LISTS, label: 'page up', meaning: 'move up one page', run: selectedBy(-PAGE) },
  { keys: ['g', 'home'], on: LISTS, label: 'first', meaning: 'go to the first row', run: selectedBy(-FAR) },
  { keys: ['G', 'end'], on: LISTS, label: 'last', meaning: 'go to the last row', run: selectedBy(FAR) },
  {
    keys: ['escape', 'q', 'h', 'left', 'ctrl+c'],
    on: LISTS,
    label: 'back',
    meaning: 'go back',
    footer: 3,
    closesLayer: true,
    run: close,
  },
  {
    name: 'close-help',
    keys: ['?'],
    on: ['help'],
    label: 'back',
    meaning: 'go back',
    closesLayer: true,
    run: close,
  },
  {
    name: 'close-contexts',
    keys: ['c'],
    on: ['contexts'],
    label: 'back',
    meaning: 'go back',
    closesLayer: true,
    run: close,
  },
];

const ofHelp: readonly Binding[] = [
  {
    keys: ['/'],
    on: ['help'],
    label: 'search',
    meaning: 'search these lines',
    footer: 4,
    run: changeLayer('help', (top) => ({ ...top, search: EMPTY_LINE })),
  },
];

/** All letters are text while help is searched. */
const ofSearch: readonly Binding[] = [
  { keys: ['enter'], on: ['search'], label: 'run', meaning: 'run the selected command', footer: 1, run: runChosen },
  {
    keys: ['down', 'ctrl+n', 'tab'],
    on: ['search'],
    label: 'down',
    meaning: 'move down',
    footer: 2,
    run: selectedBy(1),
  },
  { keys: ['up', 'ctrl+p', 'shift+tab'], on: ['search'], label: 'up', meaning: 'move up', run: selectedBy(-1) },
  { keys: ['pagedown'], on: ['search'], label: 'page down', meaning: 'move down one page', run: selectedBy(PAGE) },
  { keys: ['pageup'], on: ['search'], label: 'page up', meaning: 'move up one page', run: selectedBy(-PAGE) },
  {
    keys: ['escape', 'ctrl+c'],
    on: ['search'],
    label: 'all lines',
    meaning: 'end the search, and show all lines again',
    footer: 3,
    run: allShown,
  },
];

export const CHOICE_BINDINGS = [...named('choices', ofLists), ...named('help', ofHelp), ...named('search', ofSearch)];
