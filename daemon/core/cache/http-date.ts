const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const TIME = '\\d{2}:\\d{2}:\\d{2}';
const IMF_FIXDATE = new RegExp(`^[A-Z][a-z]{2}, \\d{2} ${MONTH} \\d{4} ${TIME} GMT$`);
const RFC_850 = new RegExp(`^[A-Z][a-z]+, (\\d{2})-(${MONTH})-(\\d{2}) (${TIME}) GMT$`);
const ASCTIME = new RegExp(`^[A-Z][a-z]{2} ${MONTH} [ \\d]\\d ${TIME} \\d{4}$`);

/**
 * Parses an HTTP date in any of its three formats (RFC 9110, 5.6.7).
 *
 * `Date.parse` alone is too lenient: it accepts `3000` as a year, and any time zone or none.
 *
 * @param nowMs wall time, used to expand two-digit years.
 * @returns ms since the epoch; NaN if the text is not an HTTP date.
 */
export function httpDateMs(text: string, nowMs: number): number {
  if (IMF_FIXDATE.test(text)) return Date.parse(text);
  const [, day, month, year, time] = RFC_850.exec(text) ?? [];
  if (year !== undefined) return Date.parse(`${day} ${month} ${fullYear(Number(year), nowMs)} ${time} GMT`);
  return ASCTIME.test(text) ? Date.parse(`${text} GMT`) : NaN;
}

/** A year more than 50 years ahead means the most recent past year with these digits (RFC 9110, 5.6.7). */
function fullYear(twoDigits: number, nowMs: number): number {
  const thisYear = new Date(nowMs).getUTCFullYear();
  const latest = thisYear + 50;
  return latest - ((((latest - twoDigits) % 100) + 100) % 100);
}
