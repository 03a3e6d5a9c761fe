/** Help: the keys of the screen below. */
import { type Binding, keyShown } from '../keys/binding.js';
import { choices, chosenAt } from '../keys/choosing.js';
import { choiceLines } from '../parts/choice.js';
import type { Area } from '../parts/list.js';
import { fitted, strip, type Strip, text } from '../parts/strip.js';
import { filterKeys } from '../state/filtering.js';
import { type Help, type State, view } from '../state/state.js';
import type { Panel } from './panel.js';

const COLUMNS = 88;
const KEY_COLUMNS = 9;
const LABEL_COLUMNS = 14;

export function helpPanel(state: State, { selected }: Help, area: Area): Panel {
  const columns = Math.min(COLUMNS, area.columns - 4);
  const language = filterLines(state);
  const found = choices(state);
  const fits = area.rows - 2 - language.length;
  // The keys have priority over the filter syntax.
  const isWhole = fits >= Math.min(8, found.length);
  const rows = Math.min(found.length, isWhole ? fits : area.rows - 2);
  const entries = choiceLines(
    found.map((binding) => entry(state, binding)),
    chosenAt(state, selected),
    columns,
    Math.max(1, rows),
  );
  return {
    title: strip(text(`Keys of ${view(state).screen}`, 'title')),
    lines: [...entries, ...(isWhole ? language : [])],
    columns,
    foot: strip(`${chosenAt(state, selected) + 1} of ${found.length}`),
  };
}

function entry({ look, ...state }: State, binding: Binding): Strip {
  const why = binding.whyDisabled?.({ look, ...state }) ?? null;
  const keys = binding.keys.map((key) => keyShown(key, look.ascii)).slice(0, 3);
  return strip(
    fitted([text(keys.join(' '), why === null ? 'key' : 'faint')], KEY_COLUMNS),
    ' ',
    fitted([text(binding.label, why === null ? 'plain' : 'faint')], LABEL_COLUMNS),
    ' ',
    text(why === null ? binding.meaning : `${binding.meaning} (${why})`, 'faint'),
  );
}

/** The filter syntax, for screens with a filter. */
function filterLines(state: State): Strip[] {
  const keys = filterKeys(state);
  if (keys.length === 0) return [];
  return [
    [],
    strip(
      text('Filter', 'title'),
      text('  words and key:value, all must match; !x: not x; a,b: a or b; "two words"', 'faint'),
    ),
    ...keys.map(({ name, what }) => strip('  ', fitted([text(`${name}:`, 'key')], KEY_COLUMNS + 1), ' ', text(what))),
  ];
}
