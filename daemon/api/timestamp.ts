/** Parser for RFC 3339 timestamps. */

const TIMESTAMP = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+\- ])(\d\d):(\d\d))$/;

/**
 * Parses an RFC 3339 timestamp with any offset, in either letter case, with any number of fractional digits.
 *
 * A space is accepted as the `+` of an offset: a `+` that a client does not percent-encode in a query becomes a space, and a space
 * has no other meaning there. A leap second, which can only be 23:59:60 in UTC, becomes the start of the next day. Digits beyond
 * milliseconds are cut off.
 *
 * @returns milliseconds since 1970 in UTC, or null if it is not an RFC 3339 timestamp.
 */
export function timestampMs(written: string): number | null {
  const parts = TIMESTAMP.exec(written);
  if (!parts) return null;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const milliseconds = Number((parts[7] ?? '').slice(0, 3).padEnd(3, '0'));
  const offsetHour = Number(parts[9] ?? 0);
  const offsetMinute = Number(parts[10] ?? 0);
  if (hour > 23 || minute > 59 || second > 60 || offsetHour > 23 || offsetMinute > 59) return null;

  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day); // Date.UTC would map the years 0 to 99 to 1900 to 1999.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return null;
  const offset = (offsetHour * 60 + offsetMinute) * (parts[8] === '-' ? -1 : 1);
  const minuteMs = date.getTime() + (hour * 60 + minute - offset) * 60_000;
  if (second === 60 && (minuteMs / 60_000 + 1) % 1440 !== 0) return null;
  return minuteMs + second * 1000 + (second === 60 ? 0 : milliseconds);
}
