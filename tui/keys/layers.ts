/** Keys of dialogs and of the filter line. */
import { actionAt, advanced, cancelAt, focusBy, listAbandoned, scrolledBy, selectedBy } from '../state/dialog.js';
import * as filtering from '../state/filtering.js';
import * as forms from '../state/forms.js';
import { checkCancelled } from '../state/provider-forms.js';
import { lineOf } from '../state/line.js';
import * as navigation from '../state/navigation.js';
import { refreshed } from '../state/refreshing.js';
import type { Dialog, Reveal } from '../state/layers.js';
import { layer, withMessage, type State, type Transition, withLayer } from '../state/state.js';
import { type Binding, changeLayer, firstKeyOf, named, type NamedBinding, onLayer } from './binding.js';

/** Lines per key press. */
const SCROLLED = 2;

/** Whether the dialog cannot scroll further. */
function isScrolledTo(state: State, by: number): boolean {
  const top = layer(state);
  return top?.kind !== 'dialog' || scrolledBy(top, by) === top;
}

/** Dialogs that confirm a change or a purge are only sent with their button. */
function whyNotSent(state: State): string | null {
  const top = layer(state);
  const isForm = top?.kind === 'dialog' && !['change', 'purge', 'export'].includes(top.purpose.for);
  return isForm ? null : 'Go to the button to confirm it';
}

const ofDialogs: readonly Binding[] = [
  {
    keys: ['tab', 'down'],
    on: ['dialog'],
    label: 'next',
    meaning: 'go to the next field or button',
    footer: 1,
    run: changeLayer('dialog', (top) => focusBy(top, 1)),
  },
  {
    keys: ['shift+tab', 'up'],
    on: ['dialog'],
    label: 'previous',
    meaning: 'go to the previous field or button',
    run: changeLayer('dialog', (top) => focusBy(top, -1)),
  },
  {
    keys: ['pagedown'],
    on: ['dialog'],
    label: 'scroll',
    meaning: 'scroll the text down',
    whyDisabled: (state) => (isScrolledTo(state, 1) ? 'This is the end of the text' : null),
    run: changeLayer('dialog', (top) => scrolledBy(top, SCROLLED)),
  },
  {
    keys: ['pageup'],
    on: ['dialog'],
    label: 'scroll back',
    meaning: 'scroll the text up',
    whyDisabled: (state) => (isScrolledTo(state, -1) ? 'This is the start of the text' : null),
    run: changeLayer('dialog', (top) => scrolledBy(top, -SCROLLED)),
  },
  {
    keys: ['enter'],
    on: ['dialog'],
    label: 'choose',
    meaning: 'press the button, or go to the next field',
    footer: 2,
    run: onLayer('dialog', (state, top) => {
      if (top.focus === cancelAt(top)) return cancelled(state, top);
      return top.focus === actionAt(top) ? forms.submitted(state, top) : [withLayer(state, advanced(top))];
    }),
  },
  {
    keys: ['ctrl+s'],
    on: ['dialog'],
    label: 'send',
    meaning: 'send a form from any field, as its second button does',
    footer: 4,
    whyDisabled: whyNotSent,
    run: onLayer('dialog', forms.submitted),
  },
  {
    keys: ['escape', 'ctrl+c'],
    on: ['dialog'],
    label: 'cancel',
    meaning: 'close without changing anything',
    footer: 3,
    isAlwaysShown: true,
    run: onLayer('dialog', cancelled),
  },
];

/** Rows per key press in the list of a field's choices. */
const PAGE = 5;

const selecting = (by: number) => onLayer('dialog', (state, top) => forms.changed(state, selectedBy(top, by)));

/** Keys while the list of a field's choices is open. Letters narrow it. */
const ofChooser: readonly Binding[] = [
  { keys: ['down', 'ctrl+n'], on: ['chooser'], label: 'down', meaning: 'move down', footer: 1, run: selecting(1) },
  { keys: ['up', 'ctrl+p'], on: ['chooser'], label: 'up', meaning: 'move up', footer: 2, run: selecting(-1) },
  { keys: ['pagedown'], on: ['chooser'], label: 'page down', meaning: 'move down one page', run: selecting(PAGE) },
  { keys: ['pageup'], on: ['chooser'], label: 'page up', meaning: 'move up one page', run: selecting(-PAGE) },
  {
    keys: ['enter', 'tab'],
    on: ['chooser'],
    label: 'choose',
    meaning: 'choose it, and go to the next field',
    footer: 3,
    run: changeLayer('dialog', advanced),
  },
  {
    keys: ['shift+tab'],
    on: ['chooser'],
    label: 'previous',
    meaning: 'choose it, and go to the previous field or button',
    run: changeLayer('dialog', (top) => focusBy(top, -1)),
  },
  {
    keys: ['escape', 'ctrl+c'],
    on: ['chooser'],
    label: 'close list',
    meaning: 'close the list; the choice from before is restored',
    footer: 4,
    isAlwaysShown: true,
    run: onLayer('dialog', (state, top) => forms.changed(state, listAbandoned(top))),
  },
];

/** While the provider checks a key, the form takes no other input. */
const ofWaiting: readonly Binding[] = [
  {
    keys: ['escape', 'ctrl+c'],
    on: ['waiting'],
    label: 'cancel the check',
    meaning: 'cancel the check of the key, and go back to the form',
    footer: 1,
    isAlwaysShown: true,
    run: onLayer('dialog', checkCancelled),
  },
];

/** Cancelling a change shows a message that nothing was changed. */
function cancelled(state: State, { purpose }: Dialog): Transition {
  const next = navigation.closed(state);
  return [purpose.for === 'change' ? withMessage(next, 'Nothing was changed.') : next];
}

const ofReveal: readonly Binding[] = [
  {
    keys: ['v'],
    on: ['reveal'],
    label: 'reveal',
    meaning: 'show the secret, or hide it again',
    footer: 1,
    run: changeLayer('reveal', (top) => ({ ...top, isShown: !top.isShown, wasRevealed: true })),
  },
  {
    keys: ['y'],
    on: ['reveal'],
    label: 'copy',
    meaning: "copy the secret to the terminal's clipboard",
    footer: 2,
    run: onLayer('reveal', (state, top) => [state, { do: 'copy', text: top.secret, what: 'The secret' }]),
  },
  {
    keys: ['w'],
    on: ['reveal'],
    label: 'write to file',
    meaning: 'write the secret to a new file that only you can read',
    footer: 3,
    run: changeLayer('reveal', (top) => ({ ...top, path: lineOf(`${top.of.is}.txt`), problem: null })),
  },
  {
    keys: ['enter'],
    on: ['reveal'],
    name: 'close',
    label: 'I have stored it',
    meaning: 'close; the secret is never shown again',
    footer: 4,
    isAlwaysShown: true,
    run: onLayer('reveal', stored),
  },
  {
    keys: ['escape', 'q', 'ctrl+c'],
    on: ['reveal'],
    label: 'not yet',
    meaning: 'no effect: this dialog is closed by its own key, so that no secret is lost by accident',
    run: changeLayer('reveal', (top, state) => ({
      ...top,
      problem: `Press ${storedKey(state)} to close, once you have stored the secret`,
    })),
  },
];

const storedKey = (state: State) => firstKeyOf(LAYER_BINDINGS, 'secret.close', state);

/** An operator who was still typing when the dialog appeared must not lose the secret by pressing Enter. */
function stored(state: State, top: Reveal): Transition {
  if (top.wasRevealed) return refreshed(navigation.closed(state));
  const problem = `You have not revealed, copied or written the secret; press ${storedKey(state)} again to close anyway`;
  return [withLayer(state, { ...top, wasRevealed: true, problem })];
}

const ofPath: readonly Binding[] = [
  {
    keys: ['enter'],
    on: ['path'],
    label: 'write',
    meaning: 'write the secret to that file, unless it exists',
    footer: 1,
    run: onLayer('reveal', written),
  },
  {
    keys: ['escape', 'ctrl+c'],
    on: ['path'],
    label: 'back',
    meaning: 'go back without writing',
    footer: 2,
    run: changeLayer('reveal', (top) => ({ ...top, path: null, problem: null })),
  },
];

function written(state: State, top: Reveal): Transition {
  const path = top.path?.text.trim() ?? '';
  if (path === '') return [withLayer(state, { ...top, problem: 'Enter a path' })];
  // A second write would fail because the file of the first one exists.
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
    run: onLayer('prompt', filtering.entered),
  },
  {
    keys: ['tab'],
    on: ['prompt'],
    label: 'complete',
    meaning: 'complete the word',
    footer: 2,
    run: onLayer('prompt', filtering.completed),
  },
  {
    keys: ['escape', 'ctrl+c'],
    on: ['prompt'],
    label: 'back',
    meaning: 'restore the previous filter',
    footer: 3,
    run: onLayer('prompt', filtering.cancelled),
  },
];

const ofNotice: readonly Binding[] = [
  {
    keys: ['enter', 'escape', 'q', 'space', 'ctrl+c'],
    on: ['notice'],
    label: 'close',
    meaning: 'close',
    footer: 1,
    isAlwaysShown: true,
    run: (state) => [navigation.closed(state)],
  },
  {
    keys: ['down', 'j', 'pagedown'],
    on: ['notice'],
    label: 'down',
    meaning: 'scroll down',
    footer: 2,
    run: changeLayer('notice', (top) => ({ ...top, scrolled: Math.min(top.sentences.length - 1, top.scrolled + 1) })),
  },
  {
    keys: ['up', 'k', 'pageup'],
    on: ['notice'],
    label: 'up',
    meaning: 'scroll up',
    run: changeLayer('notice', (top) => ({ ...top, scrolled: Math.max(0, top.scrolled - 1) })),
  },
];

export const LAYER_BINDINGS: readonly NamedBinding[] = [
  ...named('dialog', ofDialogs),
  ...named('chooser', ofChooser),
  ...named('check', ofWaiting),
  ...named('secret', ofReveal),
  ...named('path', ofPath),
  ...named('filter', ofPrompt),
  ...named('notice', ofNotice),
];
