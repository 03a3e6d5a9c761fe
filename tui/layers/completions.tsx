/** Completions of the filter, in a box above the filter line. */
import { Box } from 'ink';
import { Lines } from '../parts/drawing.js';
import { Pane } from '../parts/pane.js';
import { fitted, strip, text, widthOf } from '../parts/strip.js';
import { suggestionsAt } from '../state/filtering.js';
import type { Prompt } from '../state/layers.js';
import { areaOf } from '../state/rows.js';
import type { State } from '../state/state.js';

const MOST = 10;

/** Tab takes the first one. */
export function Completions({ state, prompt: { line } }: { state: State; prompt: Prompt }) {
  const area = areaOf(state);
  const { options = [], from = 0 } = suggestionsAt(state, line) ?? {};
  const shown = options.slice(0, Math.max(0, Math.min(MOST, area.rows - 4)));
  if (shown.length === 0) return null;
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
  const x = Math.max(0, Math.min(area.columns - columns, text(line.text.slice(0, from)).width + 1));
  return (
    <Box position="absolute" width={columns} height="100%" marginLeft={x} alignItems="flex-end">
      <Pane role="plain">
        <Lines of={lines} />
      </Pane>
    </Box>
  );
}
