/** The last line: the keys that matter most here, from the table of keys. */
import { type Binding, keyShown, labelOf } from '../keys/binding.js';
import { bindingsOn, spotOf } from '../keys/press.js';
import { fitted, strip, type Strip, text, widthOf } from '../parts/strip.js';
import type { State } from '../state/state.js';

export function footer(state: State): Strip {
  const { columns } = state.size;
  const shown = bindingsOn(spotOf(state))
    .filter(({ footer: place }) => place !== undefined)
    .sort((one, other) => (one.footer ?? 0) - (other.footer ?? 0));
  let line: Strip = [];
  for (const binding of shown) {
    const next = strip(line, line.length === 0 ? ' ' : '  ', entry(state, binding));
    if (widthOf(next) > columns) break;
    line = next;
  }
  return fitted(line, columns);
}

/** One that cannot act now is there all the same, so that nothing jumps, but faint. */
function entry(state: State, binding: Binding): Strip {
  const {
    keys: [key = ''],
  } = binding;
  const isIdle = (binding.unless?.(state) ?? null) !== null;
  return strip(
    text(keyShown(key, state.look.ascii), isIdle ? 'faint' : 'key'),
    text(` ${labelOf(binding, state)}`, isIdle ? 'faint' : 'plain'),
  );
}
