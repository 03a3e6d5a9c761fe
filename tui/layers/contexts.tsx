/** List of contexts to switch to. */
import { choiceLines } from '../parts/choice.js';
import { isRole } from '../parts/roles.js';
import { fitted, strip, type Strip, text, wrapped } from '../parts/strip.js';
import type { ContextChoice } from '../state/layers.js';
import type { ContextSummary } from '../state/exchange.js';
import { areaOf } from '../state/rows.js';
import type { State } from '../state/state.js';
import { AROUND, Panel } from './panel.js';

const COLUMNS = 66;
const NAME_COLUMNS = 20;

export function Contexts({ state, choice }: { state: State; choice: ContextChoice }) {
  const { all, selected } = choice;
  const area = areaOf(state);
  const columns = Math.min(COLUMNS, area.columns - AROUND);
  const at = Math.min(selected, (all?.length ?? 0) - 1);
  const lines = all?.length
    ? choiceLines(all.map(entry), at, columns, Math.max(1, area.rows - 2))
    : linesWithout(choice, columns);
  const foot = all?.length ? strip(`${at + 1} of ${all.length}`) : [];
  return <Panel title={strip(text('Contexts', 'title'))} lines={lines} columns={columns} foot={foot} />;
}

/** What is shown in place of contexts. */
function linesWithout({ all, failure }: ContextChoice, columns: number): Strip[] {
  if (failure) return wrapped(`! ${failure.message}`, columns).map((it) => strip(text(it, 'bad')));
  if (!all) return [strip('…')];
  return [strip('No contexts yet. Add one on the command line:'), strip('  llmp context add NAME --server URL')];
}

function entry({ name, server, isCurrent, isProtected, isReadonly, color }: ContextSummary): Strip {
  return strip(
    text(isCurrent ? '● ' : '  ', 'good'),
    fitted([text(name, color !== null && isRole(color) ? color : 'strong')], NAME_COLUMNS),
    ` ${server}`,
    isProtected && text('  PROTECTED', 'alarm'),
    isReadonly && text('  READ-ONLY', 'warning'),
  );
}
