/** Key handling: the top layer gets a key first; a key without a binding there is text for its input line. */
import * as commandLine from '../state/command-line.js';
import { hasOpenList, pasted, takesText, typed } from '../state/dialog.js';
import * as filtering from '../state/filtering.js';
import * as forms from '../state/forms.js';
import { withCommandLine } from '../state/files.js';
import { edited, inserted, isTextKey, type Line } from '../state/line.js';
import { isTooSmall } from '../state/rows.js';
import { searched, searchIn } from '../state/secret-search.js';
import type { ContextChoice, Layer } from '../state/layers.js';
import { whyNotPermitted } from '../state/permitted.js';
import { andThen, layer, type State, type Transition, view, withLayer, withMessage } from '../state/state.js';
import { act, firstKeyOf, isOffered, type KeyScope, type NamedBinding, withCustomKeys } from './binding.js';
import { CHOICE_BINDINGS } from './choosing.js';
import { COLUMN_BINDINGS } from './columns.js';
import { COMMAND_LINE_BINDINGS } from './command-line/bindings.js';
import { LAYER_BINDINGS } from './layers.js';
import { SCREEN_BINDINGS } from './screens.js';

/** All key bindings: footer, help, command line and the manual are generated from them. */
export const BINDINGS: readonly NamedBinding[] = [
  ...LAYER_BINDINGS,
  ...COMMAND_LINE_BINDINGS,
  ...COLUMN_BINDINGS,
  ...CHOICE_BINDINGS,
  ...SCREEN_BINDINGS,
];

/** The bindings of a scope that are offered to the caller, with the keys of the operator's keys file. */
export const bindingsOn = (
  scope: KeyScope,
  { customKeys, self = null }: Pick<State, 'customKeys'> & Partial<Pick<State, 'self'>> = NO_CUSTOM_KEYS,
): readonly NamedBinding[] =>
  withCustomKeys(BINDINGS, customKeys).filter((binding) => binding.on.includes(scope) && isOffered(binding, { self }));

const NO_CUSTOM_KEYS = { customKeys: new Map<string, readonly string[]>() };

/** The key of an action, such as `tokens.revoke`, as shown to the operator. */
export const keyOf = (state: Pick<State, 'customKeys' | 'look'>, action: string) => firstKeyOf(BINDINGS, action, state);

/** Whether the action is offered to the caller, so that a screen may name its key. */
export const offers = (state: Pick<State, 'self'>, action: string): boolean =>
  BINDINGS.some((binding) => binding.action === action && isOffered(binding, state));

/** The scope that receives the keys now. */
export function keyScopeOf(state: State): KeyScope {
  const top = layer(state);
  if (!top) return view(state).screen;
  if (top.kind === 'dialog' && top.awaited) return 'waiting';
  if (top.kind === 'dialog' && hasOpenList(top)) return 'chooser';
  if (top.kind === 'help' && top.search !== null) return 'search';
  return top.kind === 'reveal' && top.path !== null ? 'path' : top.kind;
}

/** Besides ^c, the only actions that work when the terminal is too small to show anything. */
const WHEN_TOO_SMALL = ['global.suspend', 'global.repaint'];

const bindingFor = (state: State, pressed: string) =>
  bindingsOn(keyScopeOf(state), state).find(({ keys }) => keys.includes(pressed));

export function key(state: State, pressed: string): Transition {
  const isSafe = () => pressed === 'ctrl+c' || WHEN_TOO_SMALL.includes(bindingFor(state, pressed)?.action ?? '');
  if (isTooSmall(state) && !isSafe()) return [state];
  const step = pressedInScope(state, pressed);
  if (step) return withoutOldMessage(state, step);
  // A terminal sends Escape followed quickly by another key as that key with Alt.
  const [, rest] = /^alt\+(.+)$/.exec(pressed) ?? [];
  if (rest === undefined) return [state];
  return andThen(key(state, 'escape'), (escaped) => key(escaped, rest));
}

/** A message about the screen that the key left is of no use on another screen. */
function withoutOldMessage(before: State, [state, ...effects]: Transition): Transition {
  const { message } = state;
  const isOld = message !== null && message === before.message && view(state) !== view(before);
  return [isOld && !message.isResult ? { ...state, message: null } : state, ...effects];
}

/** Runs an action by its name, if the current scope has it. */
export function performed(state: State, action: string): Transition {
  const binding = bindingsOn(keyScopeOf(state), state).find((it) => it.action === action);
  return binding ? act(state, binding) : [state];
}

/** @returns undefined for a key without a meaning here. */
function pressedInScope(state: State, pressed: string): Transition | undefined {
  const top = layer(state);
  // Letters go to the input line.
  const isWaiting = keyScopeOf(state) === 'waiting';
  const isTyped = top !== undefined && !isWaiting && isTextKey(pressed) && takesLetters(top);
  const binding = isTyped ? undefined : bindingFor(state, pressed);
  // Keys pressed before the list is loaded refer to the list, so they are queued.
  if (binding && top?.kind === 'contexts' && top.all === null && !binding.closesLayer)
    return queued(state, top, pressed);
  if (binding) return act(state, binding);
  if (!top) return refusedKey(state, pressed);
  if (isWaiting) return undefined;
  if (top.kind !== 'dialog') return withLine(state, top, (line) => edited(line, pressed));
  const next = typed(top, pressed);
  return next && forms.changed(state, next);
}

/** An operator who knows the key of an action that is not offered learns why. */
function refusedKey(state: State, pressed: string): Transition | undefined {
  const scope = keyScopeOf(state);
  const binding = withCustomKeys(BINDINGS, state.customKeys).find(
    ({ on, keys }) => on.includes(scope) && keys.includes(pressed),
  );
  if (binding?.needs === undefined) return undefined;
  return [withMessage(state, whyNotPermitted(state, binding.needs) ?? '', 'bad')];
}

const MAX_QUEUED_KEYS = 32;
const queued = (state: State, top: ContextChoice, pressed: string): Transition => [
  withLayer(state, { ...top, queuedKeys: [...top.queuedKeys, pressed].slice(0, MAX_QUEUED_KEYS) }),
];

const takesLetters = (top: Layer) => (top.kind === 'dialog' ? takesText(top) : lineIn(top) !== null);

/** The input line of a layer; null if it has none. */
function lineIn(top: Layer): Line | null {
  if (top.kind === 'reveal') return top.path;
  if (top.kind === 'help') return top.search;
  return top.kind === 'prompt' || top.kind === 'command' ? top.line : null;
}

function withLine(state: State, top: Layer, edit: (line: Line) => Line | undefined): Transition | undefined {
  const before = lineIn(top);
  const line = before && edit(before);
  if (!line) return undefined;
  switch (top.kind) {
    case 'prompt':
      return filtering.changed(state, { ...top, line });
    case 'command':
      return withCommandLine(state, commandLine.withLine(top, line));
    case 'help':
      return [withLayer(state, { ...top, search: line, selected: 0 })];
    case 'reveal':
      return [withLayer(state, { ...top, path: line, problem: null })];
    default:
      return undefined;
  }
}

/** Inserts pasted text. It is never read as keys. */
export function paste(state: State, text: string): Transition {
  const top = layer(state);
  if (isTooSmall(state) || keyScopeOf(state) === 'waiting') return [state];
  const search = !top || top.kind === 'prompt' ? searchIn(text) : null;
  // At once, so that a secret is never part of a line.
  if (search)
    return andThen(top?.kind === 'prompt' ? filtering.cancelled(state, top) : [state], (next) =>
      searched(next, search),
    );
  if (!top) return [state];
  if (top.kind === 'dialog') return forms.changed(state, pasted(top, text));
  return withLine(state, top, (line) => inserted(line, text.replace(/[\r\n]+$/, ''))) ?? [state];
}
