const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const TIME = '\\d{2}:\\d{2}:\\d{2}';
const TODAYS = new RegExp(`^[A-Z][a-z]{2}, \\d{2} ${MONTH} \\d{4} ${TIME} GMT$`);
const RFC_850 = new RegExp(`^[A-Z][a-z]+, (\\d{2})-(${MONTH})-(\\d{2}) (${TIME}) GMT$`);
const ASCTIME = new RegExp(`^[A-Z][a-z]{2} ${MONTH} [ \\d]\\d ${TIME} \\d{4}$`);

/**
 * A date of HTTP, in any of its three forms (RFC 9110, 5.6.7).
 *
 * `Date.parse` alone takes much for a date that is none: `3000` for the beginning of a year, any zone or none.
 *
 * @param nowMs wall time, by which a year of two digits is read.
 * @returns ms since 1970; NaN when it is none.
 */
export function httpDateMs(text: string, nowMs: number): number {
  if (TODAYS.test(text)) return Date.parse(text);
  const [, day, month, year, time] = RFC_850.exec(text) ?? [];
  if (year !== undefined) return Date.parse(`${day} ${month} ${fullYear(Number(year), nowMs)} ${time} GMT`);
  return ASCTIME.test(text) ? Date.parse(`${text} GMT`) : NaN;
}

/** More than 50 years ahead means the most recent past year with these digits. */
function fullYear(twoDigits: number, nowMs: number): number {
  const thisYear = new Date(nowMs).getUTCFullYear();
  const latest = thisYear + 50;
  return latest - ((((latest - twoDigits) % 100) + 100) % 100);
}
