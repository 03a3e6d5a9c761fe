/** What a key does, as data: the reducer acts by it; footer, help, command palette and manual show it. */
import type { Layer, Screen, State, Step } from '../state/state.js';

/** Where a key can mean something: on a screen, in what lies above it, or in the line that says where a secret is written to. */
export type Spot = Screen | Layer['kind'] | 'path';

export interface Binding {
  /** The first is the one that is shown. */
  keys: readonly string[];
  on: readonly Spot[];
  /** A word or two, for the footer. */
  label: string;
  /** Where it means something else for now. */
  labelNow?(state: State): string;
  /** What it does, for help and manual. */
  meaning: string;
  /** Its place in the footer, the smallest first; where it is narrow the largest go. None: only help tells of it. */
  footer?: number;
  /** The footer shows it however narrow it is. */
  isKept?: boolean;
  /** Why it cannot act now; null when it can. */
  unless?(state: State): string | null;
  /** It closes what has the keys. */
  isWayOut?: boolean;
  run(state: State): Step;
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

/** As an operator reads it: `^r`, `⏎`, `space`. */
export function keyShown(key: string, ascii: boolean): string {
  const known = SHOWN[key];
  if (known) return known[ascii ? 1 : 0];
  return key.replace(/^ctrl\+/, '^').replace(/^shift\+tab$/, ascii ? 'shift+tab' : '⇧tab');
}

/** What changes the state and needs nothing done for it. */
export const step =
  (change: (state: State) => State) =>
  (state: State): Step => [change(state)];

/** The first of several reasons why a key cannot act that holds; null when none does. */
export const firstOf =
  (...reasons: ((state: State) => string | null)[]) =>
  (state: State) =>
    reasons.reduce<string | null>((why, reason) => why ?? reason(state), null);
