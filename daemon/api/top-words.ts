/** What the command line, the terminal UI and the Admin UI say of a list of the busiest tokens, projects or models. */
import type { WireTop, WireTopRow } from './contract.js';
import { counted, exact, relativeTime } from './formats.js';
import type { TopDimension, TopWindow } from './vocabulary.js';

export const PLURALS: Record<TopDimension, string> = { token: 'tokens', project: 'projects', model: 'models' };
export const PERIODS: Record<TopWindow, string> = { '5m': 'last 5 minutes', '1h': 'last hour', '24h': 'last 24 hours' };
const WINDOW_MS: Record<TopWindow, number> = { '5m': 300_000, '1h': 3_600_000, '24h': 86_400_000 };

/** Who caused the errors: `4xx` and `5xx` are responses of the provider, `cut` are requests that a revocation ended. */
export const errorKinds = (row: WireTopRow): { label: string; count: number }[] =>
  [
    { label: 'llmp', count: row.refused },
    { label: '4xx', count: row.upstream_refused },
    { label: '5xx', count: row.upstream_errors },
    { label: 'cut', count: row.cut },
  ].filter(({ count }) => count > 0);

/** When a row was last used. Of models in 24 hours, only the hour is known. */
export function lastUseShown(
  by: TopDimension,
  window: TopWindow,
  { last_used_at: at }: WireTopRow,
  nowMs: number,
): string {
  const hours = Math.floor((nowMs - Date.parse(at)) / WINDOW_MS['1h']);
  if (by !== 'model' || window !== '24h' || Number.isNaN(hours)) return relativeTime(at, nowMs);
  return hours <= 0 ? 'this hour' : `${hours}h ago`;
}

/** Whether the figures do not reach back over the whole window, because the daemon started later, for example. */
export function beginsLate({ window, from, to, step_seconds: step }: WireTop): boolean {
  // The window is rounded to steps.
  return Date.parse(from) - (Date.parse(to) - WINDOW_MS[window]) > step * 1_000;
}

/**
 * What the figures lack, in a few words each.
 *
 * @param timeShown formats the time since when the daemon has figures.
 */
export function gapsOf(top: WireTop, timeShown: (timestamp: string) => string): string[] {
  const { from, instances, untracked_requests: untracked, rows, row_count: all } = top;
  return [
    ...(beginsLate(top) ? [`only since ${timeShown(from)}`] : []),
    ...(instances.missing > 0 ? [`without ${counted(instances.missing, 'instance')}`] : []),
    ...(untracked > 0 ? [`${exact(untracked)} requests in no row`] : []),
    ...(all > rows.length ? [`first ${exact(rows.length)} of ${exact(all)} rows`] : []),
  ];
}
