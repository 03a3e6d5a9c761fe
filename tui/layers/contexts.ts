/** List of contexts to switch to. */
import { choiceLines } from '../parts/choice.js';
import type { Area } from '../parts/list.js';
import { isRole } from '../parts/roles.js';
import { fitted, strip, type Strip, text } from '../parts/strip.js';
import type { ContextChoice } from '../state/layers.js';
import type { ContextSummary } from '../state/exchange.js';
import { wrapped } from '../parts/wrapped.js';
import type { Panel } from './panel.js';

const COLUMNS = 66;
const NAME_COLUMNS = 20;

export function contextsPanel({ all, selected, failure }: ContextChoice, area: Area): Panel {
  const columns = Math.min(COLUMNS, area.columns - 4);
  const title = strip(text('Contexts', 'title'));
  if (failure)
    return { title, lines: wrapped(`! ${failure.message}`, columns).map((it) => strip(text(it, 'bad'))), columns };
  if (!all) return { title, lines: [strip('…')], columns };
  if (all.length === 0) {
    const lines = [
      strip('No contexts yet. Add one on the command line:'),
      strip('  llmp context add NAME --server URL'),
    ];
    return { title, lines, columns };
  }
  const at = Math.min(selected, all.length - 1);
  const lines = choiceLines(all.map(entry), at, columns, Math.max(1, area.rows - 2));
  return { title, lines, columns, foot: strip(`${at + 1} of ${all.length}`) };
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
