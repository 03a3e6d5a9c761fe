/** The keys of what lies above the screens. */
import { actionAt, cancelAt, focusBy, onward } from '../state/dialog.js';
import * as filtering from '../state/filtering.js';
import * as forms from '../state/forms.js';
import { lineOf } from '../state/line.js';
import * as navigation from '../state/navigation.js';
import { refreshed } from '../state/refreshing.js';
import { layer, type Layer, type State, type Step, withLayer } from '../state/state.js';
import type { Binding } from './binding.js';

/** Runs with the layer on top, which is of that kind where its bindings hold. */
const on =
  <K extends Layer['kind']>(kind: K, act: (state: State, top: Extract<Layer, { kind: K }>) => Step) =>
  (state: State): Step => {
    const top = layer(state);
    return top?.kind === kind ? act(state, top as Extract<Layer, { kind: K }>) : [state];
  };

const ofDialogs: readonly Binding[] = [
  {
    keys: ['tab', 'down'],
    on: ['dialog'],
    label: 'next',
    meaning: 'to the next field or button',
    footer: 1,
    run: on('dialog', (state, top) => [withLayer(state, focusBy(top, 1))]),
  },
  {
    keys: ['shift+tab', 'up'],
    on: ['dialog'],
    label: 'before',
    meaning: 'to the field or button before',
    run: on('dialog', (state, top) => [withLayer(state, focusBy(top, -1))]),
  },
  {
    keys: ['enter'],
    on: ['dialog'],
    label: 'choose',
    meaning: 'on a button: do what it says; in a field: go on',
    footer: 2,
    run: on('dialog', (state, top) => {
      if (top.focus === cancelAt(top)) return [navigation.closed(state)];
      return top.focus === actionAt(top) ? forms.submitted(state, top) : [withLayer(state, onward(top))];
    }),
  },
  {
    keys: ['escape', 'ctrl+c'],
    on: ['dialog'],
    label: 'cancel',
    meaning: 'change nothing',
    footer: 3,
    run: (state) => [navigation.closed(state)],
  },
];

const ofReveal: readonly Binding[] = [
  {
    keys: ['v'],
    on: ['reveal'],
    label: 'reveal',
    meaning: 'show the secret, or hide it again',
    footer: 1,
    run: on('reveal', (state, top) => [withLayer(state, { ...top, isShown: !top.isShown })]),
  },
  {
    keys: ['y'],
    on: ['reveal'],
    label: 'copy',
    meaning: "send the secret to the terminal's clipboard",
    footer: 2,
    run: on('reveal', (state, top) => [state, { do: 'copy', text: top.secret, what: 'The secret' }]),
  },
  {
    keys: ['w'],
    on: ['reveal'],
    label: 'write to file',
    meaning: 'write the secret into a new file that only you can read',
    footer: 3,
    run: on('reveal', (state, top) => [withLayer(state, { ...top, path: lineOf('token.txt'), problem: null })]),
  },
  {
    keys: ['enter'],
    on: ['reveal'],
    label: 'I have stored it',
    meaning: 'close it; the secret is never shown again',
    footer: 4,
    run: (state) => refreshed(navigation.closed(state)),
  },
];

const ofPrompt: readonly Binding[] = [
  {
    keys: ['enter'],
    on: ['prompt'],
    label: 'apply',
    meaning: 'let the filter hold',
    footer: 1,
    run: on('prompt', filtering.entered),
  },
  {
    keys: ['tab'],
    on: ['prompt'],
    label: 'complete',
    meaning: 'complete the word',
    footer: 2,
    run: on('prompt', filtering.completed),
  },
  {
    keys: ['escape', 'ctrl+c'],
    on: ['prompt'],
    label: 'back',
    meaning: 'to the filter that held before',
    footer: 3,
    run: on('prompt', filtering.givenUp),
  },
];

/** Those of which one is chosen from a list. */
const CHOICES = ['palette', 'help', 'contexts'] as const;

function selectedBy(by: number) {
  return (state: State): Step => {
    const top = layer(state);
    if (top?.kind !== 'palette' && top?.kind !== 'help' && top?.kind !== 'contexts') return [state];
    // How many there are is known where they are shown; the last stays the last.
    return [withLayer(state, { ...top, selected: Math.max(0, top.selected + by) })];
  };
}

const ofChoices: readonly Binding[] = [
  { keys: ['down', 'ctrl+n'], on: CHOICES, label: 'down', meaning: 'one down', footer: 2, run: selectedBy(1) },
  { keys: ['up', 'ctrl+p'], on: CHOICES, label: 'up', meaning: 'one up', run: selectedBy(-1) },
  { keys: ['j'], on: ['help', 'contexts'], label: 'down', meaning: 'one down', run: selectedBy(1) },
  { keys: ['k'], on: ['help', 'contexts'], label: 'up', meaning: 'one up', run: selectedBy(-1) },
  {
    keys: ['escape', 'ctrl+c'],
    on: CHOICES,
    label: 'back',
    meaning: 'back',
    footer: 3,
    run: (state) => [navigation.closed(state)],
  },
  { keys: ['q', '?'], on: ['help'], label: 'back', meaning: 'back', run: (state) => [navigation.closed(state)] },
  { keys: ['q', 'c'], on: ['contexts'], label: 'back', meaning: 'back', run: (state) => [navigation.closed(state)] },
  {
    keys: ['enter'],
    on: ['contexts'],
    label: 'go there',
    meaning: 'look at that daemon',
    footer: 1,
    run: on('contexts', (state, top) => {
      const chosen = top.all?.[top.selected];
      return chosen ? [navigation.closed(state), { do: 'connect', context: chosen.name }] : [state];
    }),
  },
];

export const LAYER_BINDINGS: readonly Binding[] = [...ofDialogs, ...ofReveal, ...ofPrompt, ...ofChoices];
