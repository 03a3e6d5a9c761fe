/** The keys of what lies above the screens. */
import { actionAt, cancelAt, focusBy, onward, scrolledBy } from '../state/dialog.js';
import * as filtering from '../state/filtering.js';
import * as forms from '../state/forms.js';
import { lineOf } from '../state/line.js';
import * as navigation from '../state/navigation.js';
import { refreshed } from '../state/refreshing.js';
import {
  type Dialog,
  layer,
  type Layer,
  type Reveal,
  saying,
  type State,
  type Step,
  withLayer,
} from '../state/state.js';
import type { Binding } from './binding.js';

/** Runs with the layer on top, which is of that kind where its bindings hold. */
const on =
  <K extends Layer['kind']>(kind: K, act: (state: State, top: Extract<Layer, { kind: K }>) => Step) =>
  (state: State): Step => {
    const top = layer(state);
    return top?.kind === kind ? act(state, top as Extract<Layer, { kind: K }>) : [state];
  };

/** Lines at a time. */
const SCROLLED = 2;

/** Whether the dialog cannot be scrolled further. */
function isScrolledTo(state: State, by: number): boolean {
  const top = layer(state);
  return top?.kind !== 'dialog' || scrolledBy(top, by) === top;
}

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
    meaning: 'to the previous field or button',
    run: on('dialog', (state, top) => [withLayer(state, focusBy(top, -1))]),
  },
  {
    keys: ['pagedown'],
    on: ['dialog'],
    label: 'scroll',
    meaning: 'scroll down its text',
    unless: (state) => (isScrolledTo(state, 1) ? 'Its text ends here' : null),
    run: on('dialog', (state, top) => [withLayer(state, scrolledBy(top, SCROLLED))]),
  },
  {
    keys: ['pageup'],
    on: ['dialog'],
    label: 'scroll back',
    meaning: 'scroll up its text',
    unless: (state) => (isScrolledTo(state, -1) ? 'Its text begins here' : null),
    run: on('dialog', (state, top) => [withLayer(state, scrolledBy(top, -SCROLLED))]),
  },
  {
    keys: ['enter'],
    on: ['dialog'],
    label: 'choose',
    meaning: 'press the button, or go to the next field',
    footer: 2,
    run: on('dialog', (state, top) => {
      if (top.focus === cancelAt(top)) return cancelled(state, top);
      return top.focus === actionAt(top) ? forms.submitted(state, top) : [withLayer(state, onward(top))];
    }),
  },
  {
    keys: ['escape', 'ctrl+c'],
    on: ['dialog'],
    label: 'cancel',
    meaning: 'change nothing',
    footer: 3,
    isKept: true,
    run: on('dialog', cancelled),
  },
];

/** Who cancels is told that it was in time. */
function cancelled(state: State, { purpose }: Dialog): Step {
  const next = navigation.closed(state);
  return [purpose.for === 'change' ? saying(next, 'Nothing was changed') : next];
}

const ofReveal: readonly Binding[] = [
  {
    keys: ['v'],
    on: ['reveal'],
    label: 'reveal',
    meaning: 'show the secret, or hide it again',
    footer: 1,
    run: on('reveal', (state, top) => [withLayer(state, { ...top, isShown: !top.isShown, isTaken: true })]),
  },
  {
    keys: ['y'],
    on: ['reveal'],
    label: 'copy',
    meaning: "copy the secret to the terminal's clipboard",
    footer: 2,
    run: on('reveal', (state, top) => [state, { do: 'copy', text: top.secret, what: 'The secret' }]),
  },
  {
    keys: ['w'],
    on: ['reveal'],
    label: 'write to file',
    meaning: 'write the secret to a new file that only you can read',
    footer: 3,
    run: on('reveal', (state, top) => [withLayer(state, { ...top, path: lineOf('token.txt'), problem: null })]),
  },
  {
    keys: ['enter'],
    on: ['reveal'],
    label: 'I have stored it',
    meaning: 'close; the secret is never shown again',
    footer: 4,
    isKept: true,
    run: on('reveal', stored),
  },
  {
    keys: ['escape', 'q', 'ctrl+c'],
    on: ['reveal'],
    label: 'not yet',
    meaning: 'do nothing: only enter closes it, so that no secret is lost by accident',
    run: on('reveal', (state, top) => [
      withLayer(state, { ...top, problem: 'Only enter closes it, when it is stored' }),
    ]),
  },
];

/** Whoever was still typing when it came must not lose it by the Enter behind that. */
function stored(state: State, top: Reveal): Step {
  if (top.isTaken) return refreshed(navigation.closed(state));
  const problem = 'It was not shown, copied or written yet; enter again closes it all the same';
  return [withLayer(state, { ...top, isTaken: true, problem })];
}

const ofPath: readonly Binding[] = [
  {
    keys: ['enter'],
    on: ['path'],
    label: 'write',
    meaning: 'write the secret to that file, unless it exists',
    footer: 1,
    run: on('reveal', written),
  },
  {
    keys: ['escape', 'ctrl+c'],
    on: ['path'],
    label: 'back',
    meaning: 'write nothing',
    footer: 2,
    run: on('reveal', (state, top) => [withLayer(state, { ...top, path: null, problem: null })]),
  },
];

function written(state: State, top: Reveal): Step {
  const path = top.path?.text.trim() ?? '';
  if (path === '') return [withLayer(state, { ...top, problem: 'It needs a path' })];
  // What was begun is not begun once more: the second would find the file of the first.
  if (top.isWriting) return [state];
  return [withLayer(state, { ...top, isWriting: true, problem: null }), { do: 'write', secret: top.secret, path }];
}

const ofPrompt: readonly Binding[] = [
  {
    keys: ['enter'],
    on: ['prompt'],
    label: 'apply',
    meaning: 'apply the filter',
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
    meaning: 'restore the previous filter',
    footer: 3,
    run: on('prompt', filtering.givenUp),
  },
];

export const LAYER_BINDINGS: readonly Binding[] = [...ofDialogs, ...ofReveal, ...ofPath, ...ofPrompt];
