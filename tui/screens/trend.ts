/** The sparkline of a row of Top. */
import { merged, sparkline } from '../../console/sparkline.js';
import type { WireTopRow } from '../../daemon/api/contract.js';
import { strip, type Strip, text } from '../parts/strip.js';

/** Requests over time. Steps with errors have the color of errors. @param columns longer histories are summed up. */
export function trend(
  { history, error_history: errors }: Pick<WireTopRow, 'history' | 'error_history'>,
  columns: number,
): Strip {
  const failed = merged(errors, columns);
  const signs = sparkline(merged(history, columns));
  return strip(...signs.map((sign, at) => text(sign, (failed[at] ?? 0) > 0 ? 'bad' : 'accent')));
}
