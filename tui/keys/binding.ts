/** Key bindings, as data. The reducer runs them; footer, help, command line and manual list them. */
import type { Layer } from '../state/layers.js';
import { type Deed, may } from '../state/permitted.js';
import { layer, withLayer, withMessage } from '../state/state.js';
import type { CustomKeys, Screen, State, Transition } from '../state/state.js';

/**
 * Where a key applies: on a screen, in a layer, or in a part of one: the path of a secret, the list of a field's choices, a search in help,
 * a form that waits for the response to its change.
 */
export type KeyScope = Screen | Layer['kind'] | 'path' | 'chooser' | 'search' | 'waiting';

export interface Binding {
  /** Its name in the keys file, after that of its group. Default: the label. */
  name?: string;
  /** The first one is shown in the footer. */
  keys: readonly string[];
  on: readonly KeyScope[];
  /** One or two words for the footer. */
  label: string;
  /** Replaces the label in some states. */
  labelNow?(state: State): string;
  /** Description for help and manual. */
  meaning: string;
  /** Order in the footer; on a narrow screen the highest numbers are dropped. Unset: only help lists the key. */
  footer?: number;
  /** The footer shows the key at any width. */
  isAlwaysShown?: boolean;
  /** What it does in the management API: it is offered only to callers who may do that. Unset: it is offered to all. */
  needs?: Deed;
  /** Why the key has no effect now; null: it works. */
  whyDisabled?(state: State): string | null;
  /** Whether help leaves it out now, because another line says the same. */
  isUnlisted?(state: State): boolean;
  /** The key closes the layer. */
  closesLayer?: boolean;
  run(state: State): Transition;
}

/** A binding with its name in the keys file, such as `tokens.revoke`. It is unique. */
export interface NamedBinding extends Binding {
  action: string;
}

/** Whether the caller may do what the binding does. */
export const isOffered = ({ needs }: { needs?: Deed }, state: Pick<State, 'self'>): boolean =>
  needs === undefined || may(state, needs);

/** Names the bindings of a group for the keys file. */
export const named = (group: string, bindings: readonly Binding[]): readonly NamedBinding[] =>
  bindings.map((binding) => ({ ...binding, action: `${group}.${wordsJoined(binding.name ?? binding.label)}` }));

const wordsJoined = (label: string) =>
  label
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');

export const labelOf = (binding: Binding, state: State): string => binding.labelNow?.(state) ?? binding.label;

const SHOWN: Readonly<Record<string, readonly [shown: string, ascii: string]>> = {
  enter: ['⏎', 'enter'],
  escape: ['esc', 'esc'],
  up: ['↑', 'up'],
  down: ['↓', 'down'],
  left: ['←', 'left'],
  right: ['→', 'right'],
  pageup: ['pgup', 'pgup'],
  pagedown: ['pgdn', 'pgdn'],
};

/** A key as shown to the operator: `^r`, `⏎`, `space`. */
export function keyShown(key: string, ascii: boolean): string {
  const known = SHOWN[key];
  if (known) return known[ascii ? 1 : 0];
  return key.replace(/^ctrl\+/, '^').replace(/^shift\+tab$/, ascii ? 'shift+tab' : '⇧tab');
}

/** Whether a key keeps its meaning whatever the keys file says, so that no layer lacks a way out. */
export const isFixedKey = (key: string) => key === 'escape' || key === 'ctrl+c';

const inEffect = new WeakMap<CustomKeys, Map<readonly NamedBinding[], readonly NamedBinding[]>>();

/** The bindings with the keys of the operator's keys file. */
export function withCustomKeys(bindings: readonly NamedBinding[], custom: CustomKeys): readonly NamedBinding[] {
  if (custom.size === 0) return bindings;
  const known = inEffect.get(custom) ?? new Map<readonly NamedBinding[], readonly NamedBinding[]>();
  inEffect.set(custom, known);
  const all = known.get(bindings) ?? bindings.map((binding) => ({ ...binding, keys: keysOf(binding, custom) }));
  known.set(bindings, all);
  return all;
}

function keysOf({ action, keys }: NamedBinding, custom: CustomKeys): readonly string[] {
  const own = custom.get(action);
  return own ? [...own, ...keys.filter(isFixedKey)] : keys;
}

/** The first key of an action, as shown; without a key, how to find the action on the command line. */
export function firstKeyOf(
  bindings: readonly NamedBinding[],
  action: string,
  { customKeys, look }: Pick<State, 'customKeys' | 'look'>,
): string {
  const binding = withCustomKeys(bindings, customKeys).find((it) => it.action === action);
  const [key] = binding?.keys ?? [];
  return key === undefined ? `: ${binding?.label ?? action}` : keyShown(key, look.ascii);
}

/** Runs a key binding, or shows why it has no effect. */
export function act(state: State, binding: Binding): Transition {
  const why = binding.whyDisabled?.(state) ?? null;
  return why === null ? binding.run(state) : [withMessage(state, why, 'bad')];
}

type LayerOf<K extends Layer['kind']> = Extract<Layer, { kind: K }>;

/** Runs with the top layer if it is of this kind. */
export const onLayer =
  <K extends Layer['kind']>(kind: K, run: (state: State, top: LayerOf<K>) => Transition) =>
  (state: State): Transition => {
    const top = layer(state);
    return top?.kind === kind ? run(state, top as LayerOf<K>) : [state];
  };

/** Changes the top layer if it is of this kind. */
export const changeLayer = <K extends Layer['kind']>(kind: K, change: (top: LayerOf<K>, state: State) => LayerOf<K>) =>
  onLayer(kind, (state, top) => [withLayer(state, change(top, state))]);

/** A transition without effects. */
export const step =
  (change: (state: State) => State) =>
  (state: State): Transition => [change(state)];

/** Combines reasons why a key has no effect: returns the first one that applies, or null. */
export const firstOf =
  (...reasons: ((state: State) => string | null)[]) =>
  (state: State) =>
    reasons.reduce<string | null>((why, reason) => why ?? reason(state), null);
