/** What the command line, the terminal UI and the Admin UI say of a list of the busiest tokens, projects or models. */
import type { WireTop, WireTopRow } from './contract.js';
import { exact, relativeTime } from './formats.js';
import type { TopDimension, TopWindow } from './vocabulary.js';

export const PLURALS: Record<TopDimension, string> = {
  token: 'tokens',
  project: 'projects',
  model: 'models',
  model_total: 'models over all projects',
};
/** Whether the rows are models, of which only the minute or hour of the last use is known. */
export const isOfModels = (by: TopDimension): boolean => by === 'model' || by === 'model_total';
export const PERIODS: Record<TopWindow, string> = { '5m': 'last 5 minutes', '1h': 'last hour', '24h': 'last 24 hours' };
const WINDOW_MS: Record<TopWindow, number> = { '5m': 300_000, '1h': 3_600_000, '24h': 86_400_000 };

/** When a row was last used. Of models in 24 hours, only the hour is known. */
export function lastUseShown(
  by: TopDimension,
  window: TopWindow,
  { last_used_at: at }: WireTopRow,
  nowMs: number,
): string {
  const hours = Math.floor((nowMs - Date.parse(at)) / WINDOW_MS['1h']);
  if (!isOfModels(by) || window !== '24h' || Number.isNaN(hours)) return relativeTime(at, nowMs);
  return hours <= 0 ? 'this hour' : `${hours}h ago`;
}

/** That there are more rows than these, in a few words; null if there are not. */
export const moreRowsOf = ({ rows, row_count: all }: WireTop): string | null =>
  all > rows.length ? `first ${exact(rows.length)} of ${exact(all)} rows` : null;
