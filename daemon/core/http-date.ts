const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const TIME = '\\d{2}:\\d{2}:\\d{2}';
const TODAYS = new RegExp(`^[A-Z][a-z]{2}, \\d{2} ${MONTH} \\d{4} ${TIME} GMT$`);
const RFC_850 = new RegExp(`^[A-Z][a-z]+, \\d{2}-${MONTH}-\\d{2} ${TIME} GMT$`);
const ASCTIME = new RegExp(`^[A-Z][a-z]{2} ${MONTH} [ \\d]\\d ${TIME} \\d{4}$`);

/**
 * A date of HTTP, in any of its three forms (RFC 9110, 5.6.7).
 *
 * `Date.parse` alone takes much for a date that is none: `3000` for the beginning of a year, any zone or none.
 *
 * @returns ms since 1970; NaN when it is none.
 */
export function httpDateMs(text: string): number {
  if (TODAYS.test(text) || RFC_850.test(text)) return Date.parse(text);
  return ASCTIME.test(text) ? Date.parse(`${text} GMT`) : NaN;
}
