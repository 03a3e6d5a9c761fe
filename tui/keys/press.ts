/** From a key to what it does: the layer on top has it first; what no binding takes there goes into its line of text. */
import { pasted, takesText, typed } from '../state/dialog.js';
import * as filtering from '../state/filtering.js';
import * as forms from '../state/forms.js';
import { edited, inserted, type Line } from '../state/line.js';
import { isTooSmall } from '../state/rows.js';
import { type ContextChoice, layer, type Layer, type State, type Step, view, withLayer } from '../state/state.js';
import type { Binding, Spot } from './binding.js';
import { act, CHOICE_BINDINGS } from './choosing.js';
import { LAYER_BINDINGS } from './layers.js';
import { SCREEN_BINDINGS } from './screens.js';

/** All keys there are: footer, help, palette and the manual are made from this. */
export const BINDINGS: readonly Binding[] = [...LAYER_BINDINGS, ...CHOICE_BINDINGS, ...SCREEN_BINDINGS];

export const bindingsOn = (spot: Spot): readonly Binding[] => BINDINGS.filter(({ on }) => on.includes(spot));

/** What has the keys now. */
export function spotOf(state: State): Spot {
  const top = layer(state);
  if (!top) return view(state).screen;
  return top.kind === 'reveal' && top.path !== null ? 'path' : top.kind;
}

/** Where nothing can be seen nothing is done that one would have to see. */
const BLIND = ['ctrl+c', 'ctrl+z', 'ctrl+l'];

export function key(state: State, pressed: string): Step {
  if (isTooSmall(state) && !BLIND.includes(pressed)) return [state];
  const step = pressedThere(state, pressed);
  if (step) return step;
  // A terminal sends escape and what is typed right behind it as that key with Alt.
  const [, behind] = /^alt\+(.+)$/.exec(pressed) ?? [];
  if (behind === undefined) return [state];
  const [escaped, ...effects] = key(state, 'escape');
  const [next, ...more] = key(escaped, behind);
  return [next, ...effects, ...more];
}

/** @returns undefined for a key that means nothing there. */
function pressedThere(state: State, pressed: string): Step | undefined {
  const top = layer(state);
  // Letters belong to the line that is being typed.
  const isTyped = top !== undefined && isText(pressed) && takesLetters(top);
  const binding = isTyped ? undefined : bindingsOn(spotOf(state)).find(({ keys }) => keys.includes(pressed));
  // Who types faster than the list is read means what will be in it.
  if (binding && top?.kind === 'contexts' && top.all === null && !binding.isWayOut) return kept(state, top, pressed);
  if (binding) return act(state, binding);
  if (!top) return undefined;
  if (top.kind !== 'dialog') return withLine(state, top, (line) => edited(line, pressed));
  const next = typed(top, pressed);
  return next && forms.changed(state, next);
}

const MOST_EARLY = 32;
const kept = (state: State, top: ContextChoice, pressed: string): Step => [
  withLayer(state, { ...top, early: [...top.early, pressed].slice(0, MOST_EARLY) }),
];

const isText = (pressed: string) => pressed === 'space' || [...new Intl.Segmenter().segment(pressed)].length === 1;

const takesLetters = (top: Layer) => (top.kind === 'dialog' ? takesText(top) : lineIn(top) !== null);

/** The line that is typed into; null where there is none. */
function lineIn(top: Layer): Line | null {
  if (top.kind === 'reveal') return top.path;
  return top.kind === 'prompt' || top.kind === 'palette' ? top.line : null;
}

function withLine(state: State, top: Layer, edit: (line: Line) => Line | undefined): Step | undefined {
  const before = lineIn(top);
  const line = before && edit(before);
  if (!line) return undefined;
  switch (top.kind) {
    case 'prompt':
      return filtering.changed(state, { ...top, line });
    case 'palette':
      return [withLayer(state, { ...top, line, selected: 0 })];
    case 'reveal':
      return [withLayer(state, { ...top, path: line, problem: null })];
    default:
      return undefined;
  }
}

/** Text that was pasted: never keys. */
export function paste(state: State, text: string): Step {
  const top = layer(state);
  if (!top || isTooSmall(state)) return [state];
  if (top.kind === 'dialog') return forms.changed(state, pasted(top, text));
  return withLine(state, top, (line) => inserted(line, text.replace(/[\r\n]+$/, ''))) ?? [state];
}
