/** From a key to what it does: the layer on top has it first; what no binding takes there goes into its line of text. */
import { pasted, takesText, typed } from '../state/dialog.js';
import * as filtering from '../state/filtering.js';
import * as forms from '../state/forms.js';
import { edited, inserted, type Line } from '../state/line.js';
import * as navigation from '../state/navigation.js';
import { layer, type Layer, type Reveal, type State, type Step, view, withLayer, saying } from '../state/state.js';
import type { Binding, Spot } from './binding.js';
import { LAYER_BINDINGS } from './layers.js';
import { SCREEN_BINDINGS } from './screens.js';

/** Runs what is chosen in the palette and in help; that is what they are there for. */
const CHOOSING: readonly Binding[] = [
  { keys: ['enter'], on: ['palette', 'help'], label: 'run', meaning: 'do it', footer: 1, run: runChosen },
];

/** All keys there are: footer, help, palette and the manual are made from this. */
export const BINDINGS: readonly Binding[] = [...LAYER_BINDINGS, ...CHOOSING, ...SCREEN_BINDINGS];

export const bindingsOn = (spot: Spot): readonly Binding[] => BINDINGS.filter(({ on }) => on.includes(spot));

/** What has the keys now. */
export const spotOf = (state: State): Spot => layer(state)?.kind ?? view(state).screen;

/** What can be chosen in the palette or in help: what can be done on the screen below. */
export function choices(state: State): readonly Binding[] {
  const all = bindingsOn(view(state).screen);
  const top = layer(state);
  if (top?.kind !== 'palette') return all;
  const words = top.line.text.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter(({ label, meaning }) => words.every((word) => `${label} ${meaning}`.toLowerCase().includes(word)));
}

export const chosenAt = (state: State, selected: number) => Math.min(selected, choices(state).length - 1);

function runChosen(state: State): Step {
  const top = layer(state);
  if (top?.kind !== 'palette' && top?.kind !== 'help') return [state];
  const binding = choices(state)[chosenAt(state, top.selected)];
  return binding ? act(navigation.closed(state), binding) : [state];
}

function act(state: State, binding: Binding): Step {
  const why = binding.unless?.(state) ?? null;
  return why === null ? binding.run(state) : [saying(state, why, 'bad')];
}

export function key(state: State, pressed: string): Step {
  const top = layer(state);
  // Letters belong to the line that is being typed.
  if (top && isText(pressed) && takesLetters(top)) return typedInto(state, top, pressed);
  const binding = bindingsOn(spotOf(state)).find(({ keys }) => keys.includes(pressed));
  if (binding && !isWritingPath(top)) return act(state, binding);
  return top ? typedInto(state, top, pressed) : [state];
}

const isText = (pressed: string) => pressed === 'space' || [...new Intl.Segmenter().segment(pressed)].length === 1;
const isWritingPath = (top: Layer | undefined) => top?.kind === 'reveal' && top.path !== null;

function takesLetters(top: Layer): boolean {
  if (top.kind === 'dialog') return takesText(top);
  return top.kind === 'prompt' || top.kind === 'palette' || isWritingPath(top);
}

function typedInto(state: State, top: Layer, pressed: string): Step {
  switch (top.kind) {
    case 'dialog': {
      const next = typed(top, pressed);
      return next ? forms.previewed(withLayer(state, next), next) : [state];
    }
    case 'prompt':
      return withLine(edited(top.line, pressed), state, (line) => filtering.changed(state, { ...top, line }));
    case 'palette':
      return withLine(edited(top.line, pressed), state, (line) => [withLayer(state, { ...top, line, selected: 0 })]);
    case 'reveal':
      return top.path === null ? [state] : writing(state, top, top.path, pressed);
    default:
      return [state];
  }
}

function writing(state: State, top: Reveal, path: Line, pressed: string): Step {
  if (pressed === 'escape' || pressed === 'ctrl+c') return [withLayer(state, { ...top, path: null, problem: null })];
  if (pressed === 'enter') {
    return path.text.trim() === '' ? [state] : [state, { do: 'write', secret: top.secret, path: path.text.trim() }];
  }
  return withLine(edited(path, pressed), state, (line) => [withLayer(state, { ...top, path: line, problem: null })]);
}

const withLine = (line: Line | undefined, state: State, act: (line: Line) => Step): Step =>
  line ? act(line) : [state];

/** Text that was pasted: never keys. */
export function paste(state: State, text: string): Step {
  const top = layer(state);
  switch (top?.kind) {
    case 'dialog': {
      const next = pasted(top, text);
      return forms.previewed(withLayer(state, next), next);
    }
    case 'prompt':
      return filtering.changed(state, { ...top, line: inserted(top.line, text) });
    case 'palette':
      return [withLayer(state, { ...top, line: inserted(top.line, text), selected: 0 })];
    case 'reveal':
      return top.path === null ? [state] : [withLayer(state, { ...top, path: inserted(top.path, text) })];
    default:
      return [state];
  }
}
