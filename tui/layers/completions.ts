/** Completions of the filter, in a box above the filter line. */
import { framed } from '../parts/frame.js';
import type { Area } from '../parts/list.js';
import { fitted, over, strip, type Strip, text, widthOf } from '../parts/strip.js';
import { suggestionsAt } from '../state/filtering.js';
import type { Prompt } from '../state/layers.js';
import type { State } from '../state/state.js';

const MOST = 8;

/** Draws the completions. Tab takes the first one. */
export function withCompletions(state: State, { line }: Prompt, below: Strip[], area: Area): Strip[] {
  const { options = [], from = 0 } = suggestionsAt(state, line) ?? {};
  const shown = options.slice(0, Math.max(0, Math.min(MOST, area.rows - 4)));
  if (shown.length === 0) return below;
  const widest = Math.min(30, Math.max(...shown.map(({ insert }) => text(insert).width)));
  const lines = shown.map(({ insert, what }, at) =>
    strip(
      at === 0 ? '> ' : '  ',
      fitted([text(insert, at === 0 ? 'strong' : 'plain')], widest),
      text(`  ${what} `, 'faint'),
    ),
  );
  if (options.length > shown.length) lines.push(strip(text(`  … ${options.length - shown.length} more`, 'faint')));
  const columns = Math.min(area.columns, Math.max(...lines.map(widthOf)) + 2);
  const box = framed(lines, columns, lines.length + 2, { role: 'plain' });
  const x = Math.max(0, Math.min(area.columns - columns, text(line.text.slice(0, from)).width + 1));
  return over(below, box, { x, y: area.rows - box.length });
}
