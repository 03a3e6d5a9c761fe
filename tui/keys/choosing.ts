/** What can be chosen from a list that lies above the screen: commands by their names, keys in help, contexts. */
import * as navigation from '../state/navigation.js';
import { layer, type Layer, saying, type State, type Step, view, withLayer } from '../state/state.js';
import type { Binding } from './binding.js';
import { SCREEN_BINDINGS } from './screens.js';

const CHOICES = ['palette', 'help', 'contexts'] as const;
type Choice = Extract<Layer, { kind: (typeof CHOICES)[number] }>;

const isChoice = (top: Layer | undefined): top is Choice =>
  top?.kind === 'palette' || top?.kind === 'help' || top?.kind === 'contexts';

/** What can be chosen in the palette or in help: what can be done on the screen below. In the palette the likeliest comes first. */
export function choices(state: State): readonly Binding[] {
  const { screen } = view(state);
  const all = SCREEN_BINDINGS.filter(({ on }) => on.includes(screen));
  const top = layer(state);
  if (top?.kind !== 'palette') return all;
  const typed = top.line.text.toLowerCase().trim();
  const words = typed.split(/\s+/);
  const found = all.filter(({ label, meaning }) => {
    const text = `${label} ${meaning}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const rank = ({ label }: Binding) => (label.startsWith(typed) ? 0 : label.includes(typed) ? 1 : 2);
  return [...found].sort((one, other) => rank(one) - rank(other));
}

export const chosenAt = (state: State, selected: number) => Math.min(selected, choices(state).length - 1);

const lengthOf = (state: State, top: Choice) =>
  top.kind === 'contexts' ? (top.all?.length ?? 0) : choices(state).length;

function selectedBy(by: number) {
  return (state: State): Step => {
    const top = layer(state);
    if (!isChoice(top)) return [state];
    const selected = Math.max(0, Math.min(lengthOf(state, top) - 1, top.selected + by));
    return [withLayer(state, { ...top, selected })];
  };
}

/** Runs what is chosen in the palette and in help; that is what they are there for. */
function runChosen(state: State): Step {
  const top = layer(state);
  if (top?.kind !== 'palette' && top?.kind !== 'help') return [state];
  const binding = choices(state)[top.selected];
  return binding ? act(navigation.closed(state), binding) : [saying(state, 'No command is called that', 'bad')];
}

/** Does what a key is for, or says why not. */
export function act(state: State, binding: Binding): Step {
  const why = binding.unless?.(state) ?? null;
  return why === null ? binding.run(state) : [saying(state, why, 'bad')];
}

function goThere(state: State): Step {
  const top = layer(state);
  if (top?.kind !== 'contexts') return [state];
  const chosen = top.all?.[top.selected];
  return chosen
    ? navigation.toContext(navigation.closed(state), chosen.name)
    : [saying(state, 'There is no context here')];
}

const close = (state: State): Step => [navigation.closed(state)];
const FAR = Number.MAX_SAFE_INTEGER;
const PAGE = 10;

export const CHOICE_BINDINGS: readonly Binding[] = [
  { keys: ['enter'], on: ['palette', 'help'], label: 'run', meaning: 'do it', footer: 1, run: runChosen },
  { keys: ['enter'], on: ['contexts'], label: 'go there', meaning: 'switch to that daemon', footer: 1, run: goThere },
  {
    keys: ['down', 'ctrl+n', 'tab'],
    on: CHOICES,
    label: 'down',
    meaning: 'move down',
    footer: 2,
    run: selectedBy(1),
  },
  { keys: ['up', 'ctrl+p', 'shift+tab'], on: CHOICES, label: 'up', meaning: 'move up', run: selectedBy(-1) },
  { keys: ['j'], on: ['help', 'contexts'], label: 'down', meaning: 'move down', run: selectedBy(1) },
  { keys: ['k'], on: ['help', 'contexts'], label: 'up', meaning: 'move up', run: selectedBy(-1) },
  { keys: ['pagedown'], on: CHOICES, label: 'page down', meaning: 'a page down', run: selectedBy(PAGE) },
  { keys: ['pageup'], on: CHOICES, label: 'page up', meaning: 'a page up', run: selectedBy(-PAGE) },
  { keys: ['ctrl+d'], on: ['help', 'contexts'], label: 'page down', meaning: 'a page down', run: selectedBy(PAGE) },
  { keys: ['ctrl+u'], on: ['help', 'contexts'], label: 'page up', meaning: 'a page up', run: selectedBy(-PAGE) },
  { keys: ['g', 'home'], on: ['help', 'contexts'], label: 'first', meaning: 'to the first', run: selectedBy(-FAR) },
  { keys: ['G', 'end'], on: ['help', 'contexts'], label: 'last', meaning: 'to the last', run: selectedBy(FAR) },
  { keys: ['escape', 'ctrl+c'], on: CHOICES, label: 'back', meaning: 'back', footer: 3, isWayOut: true, run: close },
  { keys: ['q', '?', 'h', 'left'], on: ['help'], label: 'back', meaning: 'back', isWayOut: true, run: close },
  { keys: ['q', 'c', 'h', 'left'], on: ['contexts'], label: 'back', meaning: 'back', isWayOut: true, run: close },
];
