/** Help: the keys of the screen below, and its filter. No line is cut: what does not fit goes on in the next line. */
import { type Binding, keyShown } from '../keys/binding.js';
import { choices, chosenAt, hasWords, searchWords } from '../keys/choosing.js';
import { choiceBlocks, hanging } from '../parts/choice.js';
import { edited } from '../parts/editing.js';
import { withFound } from '../parts/found.js';
import { fitted, strip, type Strip, text } from '../parts/strip.js';
import { filterKeys } from '../state/filtering.js';
import type { Help } from '../state/layers.js';
import { areaOf } from '../state/rows.js';
import { type State, view } from '../state/state.js';
import { AROUND, Panel } from './panel.js';

const COLUMNS = 88;
const KEY_COLUMNS = 10;
const LABEL_COLUMNS = 14;
/** The mark before the selected entry. */
const MARK_COLUMNS = 2;
const FILTER_SYNTAX = 'words and key:value, all must match; !x: not x; a,b: a or b; "two words"';

export function HelpPanel({ state, help: { selected, search } }: { state: State; help: Help }) {
  const area = areaOf(state);
  const columns = Math.min(COLUMNS, area.columns - AROUND);
  const inside = area.rows - 2 - (search === null ? 0 : 1);
  const found = choices(state);
  const blocks = found.map((binding) => entry(state, binding, columns - MARK_COLUMNS));
  const whole = blocks.reduce((sum, { length }) => sum + length, 0);
  const language = filterLines(state, columns);
  // The keys have priority over the filter syntax.
  const fits = inside - language.length >= Math.min(8, whole);
  const rows = Math.max(1, Math.min(whole, fits ? inside - language.length : inside));
  const entries = choiceBlocks(blocks, chosenAt(state, selected), columns, rows);
  const shown = [...entries, ...(fits ? language : [])];
  const lines = [
    ...(search === null ? [] : [strip(text('/ ', 'key'), edited(search, columns - 2, { hasFocus: true }))]),
    ...(shown.length > 0 ? shown : [strip(text('  no line has these words', 'faint'))]),
  ];
  const foot = strip(`${found.length === 0 ? 0 : chosenAt(state, selected) + 1} of ${found.length}`);
  const title = strip(text(`Keys of ${view(state).screen}`, 'title'));
  return <Panel title={title} lines={lines} columns={columns} foot={foot} />;
}

function entry({ look, ...state }: State, binding: Binding, columns: number): Strip[] {
  const why = binding.whyDisabled?.({ look, ...state }) ?? null;
  const keys = text(keysShown(binding, look.ascii), why === null ? 'key' : 'faint');
  const role = why === null ? 'plain' : 'faint';
  const words = searchWords({ look, ...state });
  const head = strip(
    fitted([keys], Math.max(KEY_COLUMNS, keys.width)),
    ' ',
    fitted(withFound(binding.label, words, role), LABEL_COLUMNS),
    ' ',
  );
  const meaning = why === null ? binding.meaning : `${binding.meaning} (${why})`;
  return hanging(head, meaning, columns, (line) => withFound(line, words, 'faint'));
}

/** The first key, and as many others as fit. */
function keysShown({ keys }: Binding, ascii: boolean): string {
  const [first = '', ...others] = keys.map((key) => keyShown(key, ascii));
  return others.reduce((all, key) => (text(`${all} ${key}`).width <= KEY_COLUMNS ? `${all} ${key}` : all), first);
}

/** The filter syntax, for screens with a filter. While help is searched: the keys of the filter that are found. */
function filterLines(state: State, columns: number): Strip[] {
  const words = searchWords(state);
  const keys = filterKeys(state).filter(({ name, what }) => hasWords(`filter ${name}: ${what}`, words));
  if (keys.length === 0) return [];
  const title = strip(text('Filter', 'title'), '  ');
  return [
    [],
    ...hanging(title, FILTER_SYNTAX, columns, (line) => [text(line, 'faint')]),
    ...keys.flatMap(({ name, what }) => {
      const head = strip('  ', fitted([text(`${name}:`, 'key')], KEY_COLUMNS), ' ');
      return hanging(head, what, columns, (line) => withFound(line, words));
    }),
  ];
}
