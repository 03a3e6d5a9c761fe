import type { Kind } from '../config/kinds.js';
import { MS_PER_UNIT, spanMs } from '../daemon/api/vocabulary.js';

/** Milliseconds. Unlike settings it accepts days and weeks, because it is never used for a timer. */
export const span: Kind<number> = {
  accepts: 'a time such as 30m, 2h, 7d or 2w',
  parse: (given) => (given.startsWith('-') ? undefined : spanMs(given)),
};

/** A span to the minute: `90m`, `20h 12m`, `36h`, `2d`. Seconds are rounded. */
export function spanShown(ms: number): string {
  const minutes = Math.round(ms / MS_PER_UNIT.m);
  if (minutes % 1440 === 0) return `${minutes / 1440}d`;
  if (minutes % 60 === 0) return `${minutes / 60}h`;
  return minutes <= 120 ? `${minutes}m` : `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
}

/** A time relative to now, or an absolute one. */
export type Moment = { agoMs: number } | { at: string };

const TIMESTAMP = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?Z)?$/;

export const moment: Kind<Moment> = {
  accepts: 'a time ago such as 24h or 7d, a day such as 2030-01-31, or a time in UTC such as 2030-01-31T12:00:00Z',
  parse(given) {
    const agoMs = span.parse(given);
    if (agoMs !== undefined) return { agoMs };
    const atMs = TIMESTAMP.test(given) ? Date.parse(given) : NaN;
    return Number.isNaN(atMs) ? undefined : { at: new Date(atMs).toISOString() };
  },
};

export function timestampOf(moment: Moment, nowMs: number): string {
  return 'at' in moment ? moment.at : new Date(nowMs - moment.agoMs).toISOString();
}
