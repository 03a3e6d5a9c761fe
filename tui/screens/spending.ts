/** What a token or a project may spend and has spent, on its screen: two lines. */
import { budgetParts, NEARLY_SPENT, partShown, spentShown } from '../../console/columns/spending.js';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import { keyOf } from '../keys/press.js';
import { bar } from '../parts/charts.js';
import { fact } from '../parts/columns.js';
import { strip, type Strip, text, widthOf } from '../parts/strip.js';
import type { State } from '../state/state.js';

const BAR_COLUMNS = 32;
const LEAST_BAR_COLUMNS = 4;

interface Place {
  columns: number;
  /** Width of the names of facts. */
  nameColumns: number;
  /** The action that changes the budget. */
  action: string;
}

export function spendingLines(
  state: State,
  { budget, spent }: Pick<WireToken | WireProject, 'budget' | 'spent'>,
  { columns, nameColumns, action }: Place,
): Strip[] {
  const room = columns - nameColumns - 1;
  return [
    fact('budget', budget ? budgetStrip(budget, spent, room) : noBudget(keyOf(state, action)), nameColumns),
    fact('spent', spentShown({ budget, spent }), nameColumns),
  ];
}

const noBudget = (key: string) => strip('none', text(`  ${key} sets one`, 'faint'));

/** A bar of the unit of which most is spent, its figures, those of the other if there is room, and the mode. */
function budgetStrip(budget: NonNullable<WireToken['budget']>, spent: WireToken['spent'], room: number): Strip {
  const [first, ...others] = budgetParts(budget, spent).sort((one, other) => other.share - one.share);
  if (!first) return [];
  const figures = strip(`  ${partShown(first, budget)}`, text(`, ${budget.mode}`, 'faint'));
  const more = strip(...others.map((part) => `; ${partShown(part, budget)}`));
  const hasMore = widthOf(figures) + widthOf(more) + LEAST_BAR_COLUMNS <= room;
  const shown = hasMore ? strip(figures, more) : figures;
  const width = Math.max(LEAST_BAR_COLUMNS, Math.min(BAR_COLUMNS, room - widthOf(shown)));
  const role = first.share >= 1 ? 'bad' : first.share >= NEARLY_SPENT ? 'warning' : 'good';
  return strip(bar(first.share, width, role), shown);
}
