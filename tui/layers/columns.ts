/** The choice of columns. The list below shows it at once. */
import { choiceLines } from '../parts/choice.js';
import type { Area } from '../parts/list.js';
import { fitted, strip, type Strip, text } from '../parts/strip.js';
import { columnsOf } from '../state/columns.js';
import type { ColumnChoice } from '../state/layers.js';
import type { Panel } from './panel.js';

const COLUMNS = 66;
const NAME_COLUMNS = 14;

export function columnsPanel(choice: ColumnChoice, area: Area): Panel {
  const { screen, entries, selected, notice } = choice;
  const columns = Math.min(COLUMNS, area.columns - 4);
  const said = notice === null ? [] : [strip(text(notice, 'warning'))];
  const rows = Math.max(1, Math.min(entries.length, area.rows - 2 - said.length));
  return {
    title: strip(text(`Columns of ${screen}`, 'title')),
    lines: [
      ...choiceLines(
        entries.map((entry) => line(choice, entry)),
        selected,
        columns,
        rows,
      ),
      ...said,
    ],
    columns,
    foot: strip(text('where not all fit, the last ones are left out', 'faint')),
  };
}

function line({ screen }: ColumnChoice, { id, isShown }: ColumnChoice['entries'][number]): Strip {
  const what = columnsOf(screen).find((it) => it.id === id)?.what ?? '';
  return strip(
    text(isShown ? '[x] ' : '[ ] ', isShown ? 'accent' : 'faint'),
    fitted([text(id.replaceAll('_', ' '), isShown ? 'plain' : 'faint')], NAME_COLUMNS),
    ' ',
    text(what, 'faint'),
  );
}
