/** The period of a usage report: one of a list, or two dates. */
import { invalidRequest } from './page-request.js';
import { lastSteps, STEP_MS, type Timeline } from './pages/timeline.js';

// Up to this length a chart has a bar for each hour.
const MAX_HOURLY_MS = 7 * STEP_MS.day;
const MAX_DAYS = 366;

interface PeriodQuery {
  /** Hours until now. Dates in the query replace it. */
  period: string;
  query: URLSearchParams;
  nowMs: number;
}

/** @throws {ApiError} if a date is invalid, or the period is too long. */
export function periodOf({ period, query, nowMs }: PeriodQuery): Timeline {
  const from = dateIn(query, 'from');
  const to = dateIn(query, 'to');
  if (from === null && to === null) {
    const lengthMs = Number(period) * STEP_MS.hour;
    return lengthMs <= MAX_HOURLY_MS
      ? lastSteps(lengthMs / STEP_MS.hour, 'hour', nowMs)
      : lastSteps(Math.ceil(lengthMs / STEP_MS.day), 'day', nowMs);
  }
  if (from === null) throw invalidRequest('choose the first day as well');
  if (from > nowMs) throw invalidRequest('the first day must not be in the future');
  const today = Math.floor(nowMs / STEP_MS.day) * STEP_MS.day;
  // The last day is included.
  const toMs = Math.min(to ?? today, today) + STEP_MS.day;
  if (toMs <= from) throw invalidRequest('the last day must not be before the first');
  if (toMs - from > MAX_DAYS * STEP_MS.day) throw invalidRequest(`choose a period of up to ${MAX_DAYS} days`);
  return { fromMs: from, toMs, step: toMs - from <= MAX_HOURLY_MS ? 'hour' : 'day' };
}

/** @returns the start of the day in UTC; null if the field is empty. */
function dateIn(query: URLSearchParams, name: string): number | null {
  const given = query.get(name)?.trim() ?? '';
  if (given === '') return null;
  const ms = Date.parse(`${given}T00:00:00Z`);
  // 30 February would be read as a day in March.
  if (Number.isNaN(ms) || new Date(ms).toISOString() !== `${given}T00:00:00.000Z`)
    throw invalidRequest('a day must be written like 2030-01-31');
  return ms;
}
