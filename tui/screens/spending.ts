/** Two lines on the screen of a token or project: its budget, and what it has spent. */
import { budgetParts, NEARLY_SPENT, partShown, type Spender, spentShown } from '../../console/columns/policies.js';
import { keyOf, offers } from '../keys/press.js';
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

export function spendingLines(state: State, spender: Spender, { columns, nameColumns, action }: Place): Strip[] {
  const budget =
    budgetStrip(spender, columns - nameColumns - 1) ?? noBudget(offers(state, action) ? keyOf(state, action) : null);
  return [fact('budget', budget, nameColumns), fact('spent', spentShown(spender), nameColumns)];
}

/** @param key null if the caller may not set one. */
const noBudget = (key: string | null) => strip('none', key !== null && text(`  ${key} sets one`, 'faint'));

/** A bar and the figures of the unit with the largest share spent, the mode, and the figures of the other unit if there is room. Null without a budget. */
function budgetStrip(spender: Spender, room: number): Strip | null {
  const { budget } = spender;
  const [first, ...others] = budgetParts(spender);
  if (!budget || !first) return null;
  const figures = strip(`  ${partShown(first, budget)}`, text(`, ${budget.mode}`, 'faint'));
  const more = strip(...others.map((part) => `; ${partShown(part, budget)}`));
  const hasMore = widthOf(figures) + widthOf(more) + LEAST_BAR_COLUMNS <= room;
  const shown = hasMore ? strip(figures, more) : figures;
  const width = Math.max(LEAST_BAR_COLUMNS, Math.min(BAR_COLUMNS, room - widthOf(shown)));
  const role = first.share >= 1 ? 'bad' : first.share >= NEARLY_SPENT ? 'warning' : 'good';
  return strip(bar(first.share, width, role), shown);
}
