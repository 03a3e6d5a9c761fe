/**
 * Spans of time, as operators write them: how long, how long ago, and the lifetime of a token. Each kind says what it accepts, and parses a
 * text: the result is undefined if the text is not valid.
 */
import { MAX_DURATION_HOURS, MS_PER_UNIT, spanMs } from '../daemon/api/vocabulary.js';
import type { TokenCreate } from '../daemon/api/contract.js';

/** Milliseconds. Unlike settings it accepts days and weeks, because it is never used for a timer. */
export const span = {
  accepts: 'a time such as 30m, 2h, 7d or 2w',
  parse: (given: string): number | undefined => (given.startsWith('-') ? undefined : spanMs(given)),
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

/** A day or a time in UTC, in milliseconds since the epoch; undefined if the text is neither. */
export function utcMs(given: string): number | undefined {
  const ms = TIMESTAMP.test(given) ? Date.parse(given) : NaN;
  // 30 February would be a day in March.
  if (Number.isNaN(ms) || !new Date(ms).toISOString().startsWith(given.slice(0, 10))) return undefined;
  return ms;
}

export const moment = {
  accepts: 'a time ago such as 24h or 7d, a day such as 2030-01-31, or a time in UTC such as 2030-01-31T12:00:00Z',
  parse(given: string): Moment | undefined {
    const agoMs = span.parse(given);
    if (agoMs !== undefined) return { agoMs };
    const atMs = utcMs(given);
    return atMs === undefined ? undefined : { at: new Date(atMs).toISOString() };
  },
};

export function timestampOf(moment: Moment, nowMs: number): string {
  return 'at' in moment ? moment.at : new Date(nowMs - moment.agoMs).toISOString();
}

/** The lifetime of a token as a field of the API: exactly one of the two. */
export type Lifetime = Pick<TokenCreate, 'duration_hours' | 'duration_minutes'>;

// 30 days. Withering tokens are meant to be short-lived.
export const LONGEST_RECOMMENDED_HOURS = 720;

export const lifetime = {
  accepts: `hours from 1 to ${MAX_DURATION_HOURS} such as 48, or a time with a unit such as 90m, 48h, 7d or 2w`,
  parse(given: string): Lifetime | undefined {
    const minutes = (span.parse(/^\d+$/.test(given) ? `${given}h` : given) ?? 0) / MS_PER_UNIT.m;
    if (!Number.isInteger(minutes) || minutes < 1 || minutes > MAX_DURATION_HOURS * 60) return undefined;
    return minutes % 60 === 0 ? { duration_hours: minutes / 60 } : { duration_minutes: minutes };
  },
};

/** @returns hours; 0 when no lifetime was given. */
export const hoursOf = (given: Lifetime | undefined): number =>
  given?.duration_hours ?? (given?.duration_minutes ?? 0) / 60;
