/** The choice of columns. The list below shows it at once. */
import { choiceLines } from '../parts/choice.js';
import { fitted, strip, type Strip, text } from '../parts/strip.js';
import { columnsOf } from '../state/columns.js';
import type { ColumnChoice } from '../state/layers.js';
import { areaOf } from '../state/rows.js';
import type { State } from '../state/state.js';
import { AROUND, Panel } from './panel.js';

const COLUMNS = 66;
const NAME_COLUMNS = 14;

export function Columns({ state, choice }: { state: State; choice: ColumnChoice }) {
  const { screen, entries, selected, notice } = choice;
  const area = areaOf(state);
  const columns = Math.min(COLUMNS, area.columns - AROUND);
  const said = notice === null ? [] : [strip(text(notice, 'warning'))];
  const rows = Math.max(1, Math.min(entries.length, area.rows - 2 - said.length));
  const lines = entries.map((entry) => line(choice, entry));
  return (
    <Panel
      title={strip(text(`Columns of ${screen}`, 'title'))}
      lines={[...choiceLines(lines, selected, columns, rows), ...said]}
      columns={columns}
      foot={strip(text('where not all fit, the last ones are left out', 'faint'))}
    />
  );
}

function line({ screen }: ColumnChoice, { id, isShown }: ColumnChoice['entries'][number]): Strip {
  const { what, key } = columnsOf(screen).find((it) => it.id === id) ?? { what: '' };
  return strip(
    text(isShown ? '[x] ' : '[ ] ', isShown ? 'accent' : 'faint'),
    fitted([text(id.replaceAll('_', ' '), isShown ? 'plain' : 'faint')], NAME_COLUMNS),
    ' ',
    text(what, 'faint'),
    key !== undefined && text(`  ${key}:`, 'key'),
  );
}
