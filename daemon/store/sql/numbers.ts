/**
 * Conversion of 64-bit and decimal numbers (counts, sums, times, sequence numbers) from a database server to JavaScript numbers. By
 * default the drivers return some of them as strings, which our code does not expect: `BIGINT` and `COUNT` on PostgreSQL, `SUM` on
 * both servers. The SQLite driver returns numbers.
 */

/** @throws {RangeError} for a number that JavaScript would round, so that no count or position is silently wrong. */
export function exactNumber(text: string): number {
  const number = Number(text);
  if (Number.isNaN(number) || Math.abs(number) > Number.MAX_SAFE_INTEGER) {
    throw new RangeError(`the database contains the number ${text}, which is too large for an exact JavaScript number`);
  }
  return number;
}

/** The part of a `pg` client that sets type parsers. */
export interface PostgresTypes {
  setTypeParser(oid: number, parse: (text: string) => number): void;
}

// OIDs from the catalogue `pg_type`, the same on every server.
const POSTGRES_NUMBERS = { int8: 20, numeric: 1700 };

export function readPostgresNumbers(client: PostgresTypes): void {
  for (const oid of Object.values(POSTGRES_NUMBERS)) client.setTypeParser(oid, exactNumber);
}

const MYSQL_NUMBERS: readonly string[] = ['LONGLONG', 'DECIMAL', 'NEWDECIMAL'];

/** For the `typeCast` option of mysql2, which returns a string for decimals and for numbers that JavaScript would round. */
export function readMysqlNumber(field: { type: string }, next: () => unknown): unknown {
  const value = next();
  return typeof value === 'string' && MYSQL_NUMBERS.includes(field.type) ? exactNumber(value) : value;
}
