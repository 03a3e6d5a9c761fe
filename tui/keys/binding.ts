/** Key bindings, as data. The reducer runs them; footer, help, command palette and manual list them. */
import type { Layer, Screen, State, Transition } from '../state/state.js';

/** Where a key applies: on a screen, in a layer, or in the input for the path of a secret. */
export type KeyScope = Screen | Layer['kind'] | 'path';

export interface Binding {
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
  /** Why the key has no effect now; null: it works. */
  whyDisabled?(state: State): string | null;
  /** The key closes the layer. */
  closesLayer?: boolean;
  run(state: State): Transition;
}

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

/** A transition without effects. */
export const step =
  (change: (state: State) => State) =>
  (state: State): Transition => [change(state)];

/** Combines reasons why a key has no effect: returns the first one that applies, or null. */
export const firstOf =
  (...reasons: ((state: State) => string | null)[]) =>
  (state: State) =>
    reasons.reduce<string | null>((why, reason) => why ?? reason(state), null);
