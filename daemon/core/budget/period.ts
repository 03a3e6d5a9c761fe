/** The periods of budgets, in UTC. A request is charged to the period of its admission. */
import type { BudgetPeriod } from '../../api/vocabulary.js';

const DAY_MS = 86_400_000;

/** Start of the day, in ms since the epoch. */
export const dayOf = (timeMs: number): number => timeMs - (timeMs % DAY_MS);

/** The last day that was asked for, and the start of its month: each request asks for that of the current day. */
let [lastDayMs, lastMonthMs] = [0, 0];

/** Start of the month. */
export function monthOf(timeMs: number): number {
  const dayMs = dayOf(timeMs);
  if (dayMs !== lastDayMs) {
    const date = new Date(timeMs);
    [lastDayMs, lastMonthMs] = [dayMs, Date.UTC(date.getUTCFullYear(), date.getUTCMonth())];
  }
  return lastMonthMs;
}

/** Start of the period that contains a time; 0 for the whole life. */
export function startOf(period: BudgetPeriod, timeMs: number): number {
  if (period === 'none') return 0;
  return period === 'day' ? dayOf(timeMs) : monthOf(timeMs);
}

/** End of the period that starts at `fromMs`; Infinity for the whole life. */
export function endOf(period: BudgetPeriod, fromMs: number): number {
  if (period === 'none') return Infinity;
  if (period === 'day') return fromMs + DAY_MS;
  const date = new Date(fromMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}
