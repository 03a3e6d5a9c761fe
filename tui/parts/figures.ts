/** Formats of the terminal UI, which has little space. */
import { exact, short } from '../../daemon/api/formats.js';

/** `4,211`; from 100,000 on `123k`, `1.23M`. Up to six characters. */
export function count(value: number): string {
  if (value < 100_000) return exact(value);
  if (value < 1_000_000) return `${Math.floor(value / 1_000)}k`;
  return value < 1e9 ? `${short(value / 1e6)}M` : `${short(value / 1e9)}G`;
}

/** @param value null if nothing was measured. */
export function milliseconds(value: number | null): string {
  if (value === null) return '–';
  return value < 10_000 ? `${exact(Math.round(value))} ms` : `${(value / 1000).toFixed(1)} s`;
}

export const percent = (share: number) => `${Math.round(share * 100)}%`;

const two = (value: number) => String(value).padStart(2, '0');

/** Local time: `14:03:11`. */
export function clockTime(atMs: number): string {
  const at = new Date(atMs);
  return Number.isNaN(at.getTime()) ? '?' : `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Local date and hour: `2026-11-23 14h`, of a record that sums up an hour. */
export const dateHour = (timestamp: string): string => dateTime(timestamp).replace(/:\d\d:\d\d$/, 'h');

/** Local date and time: `2026-11-23 14:03:11`. */
export function dateTime(timestamp: string): string {
  const at = new Date(timestamp);
  if (Number.isNaN(at.getTime())) return timestamp;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clockTime(at.getTime())}`;
}

/** Today as a time; another day as date and time, or the date alone if there is little room. @param whole as `dateTime` or `dateHour` returns it. */
export function shortTime(whole: string, nowMs: number, isNarrow: boolean): string {
  const [day = '', clock = ''] = whole.split(' ');
  if (clock === '') return whole;
  if (dateTime(new Date(nowMs).toISOString()).startsWith(day)) return clock;
  return isNarrow ? day.slice(2) : `${day.slice(5)} ${clock.slice(0, 5)}`;
}
