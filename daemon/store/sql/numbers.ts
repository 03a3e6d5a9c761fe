/**
 * The one place where a server's 64-bit and decimal numbers (counts, sums, times, sequence numbers) become JavaScript numbers. Left to
 * themselves the drivers give some of them as strings, which nothing behind the store expects: `BIGINT` and `COUNT` on PostgreSQL,
 * `SUM` on both. SQLite's driver gives numbers by itself.
 */

/** @throws {RangeError} for a number that JavaScript would round, so that no count or position is ever silently another one. */
export function exactNumber(text: string): number {
  const number = Number(text);
  if (Number.isNaN(number) || Math.abs(number) > Number.MAX_SAFE_INTEGER) {
    throw new RangeError(`the database holds the number ${text}, which is too large to be read exactly`);
  }
  return number;
}

/** A client of `pg`, as far as its types are concerned. */
export interface PostgresTypes {
  setTypeParser(oid: number, parse: (text: string) => number): void;
}

// Of the catalogue `pg_type`, the same on every server.
const POSTGRES_NUMBERS = { int8: 20, numeric: 1700 };

export function readPostgresNumbers(client: PostgresTypes): void {
  for (const oid of Object.values(POSTGRES_NUMBERS)) client.setTypeParser(oid, exactNumber);
}

const MYSQL_NUMBERS: readonly string[] = ['LONGLONG', 'DECIMAL', 'NEWDECIMAL'];

/** For the `typeCast` of mysql2, which gives a string for what is decimal and for what JavaScript would round. */
export function readMysqlNumber(field: { type: string }, next: () => unknown): unknown {
  const value = next();
  return typeof value === 'string' && MYSQL_NUMBERS.includes(field.type) ? exactNumber(value) : value;
}
