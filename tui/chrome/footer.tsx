/** The last line: the most important keys of the current scope. */
import { type Binding, keyShown, labelOf } from '../keys/binding.js';
import { bindingsOn, keyScopeOf } from '../keys/press.js';
import { Lines } from '../parts/drawing.js';
import { joined, strip, type Strip, text, widthOf } from '../parts/strip.js';
import type { State } from '../state/state.js';

export function Footer({ state }: { state: State }) {
  const { columns } = state.size;
  const shown = bindingsOn(keyScopeOf(state), state)
    .filter(({ footer: place, keys }) => place !== undefined && keys.length > 0)
    .sort((one, other) => (one.footer ?? 0) - (other.footer ?? 0));
  const entries = shown.map((binding) => ({ ...entryOf(state, binding), isKept: binding.isAlwaysShown ?? false }));
  let room = columns - entries.filter(({ isKept }) => isKept).reduce((sum, { width }) => sum + width, 0);
  let isFull = false;
  // The most important keys that fit, in their order. Room for those that are always shown is reserved.
  const fitting = entries.filter(({ width, isKept }) => {
    if (isKept) return true;
    isFull ||= width > room;
    if (!isFull) room -= width;
    return !isFull;
  });
  const lines = fitting.map(({ line }) => line);
  return <Lines of={[strip(' ', joined(lines, GAP))]} />;
}

const GAP = '  ';

function entryOf(state: State, binding: Binding) {
  const line = entry(state, binding);
  return { line, width: widthOf(line) + GAP.length };
}

/** A key without effect is dimmed but not removed, so that the footer does not jump. */
function entry(state: State, binding: Binding): Strip {
  const {
    keys: [key = ''],
  } = binding;
  const isIdle = (binding.whyDisabled?.(state) ?? null) !== null;
  return strip(
    text(keyShown(key, state.look.ascii), isIdle ? 'faint' : 'key'),
    text(` ${labelOf(binding, state)}`, isIdle ? 'faint' : 'plain'),
  );
}
