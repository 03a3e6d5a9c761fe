/**
 * Conversion of 64-bit and decimal numbers (counts, sums, times, sequence numbers) from a database server to JavaScript numbers. By
 * default the drivers return some of them as strings, which our code does not expect: `BIGINT` and `COUNT` on PostgreSQL, `SUM` on
 * both servers. The SQLite driver returns numbers.
 */

import { StoreUnavailable } from '../../core/ports.js';

/** @throws {RangeError} for a number that JavaScript would round, so that no count or position is silently wrong. */
export function exactNumber(text: string): number {
  const number = Number(text);
  if (Number.isNaN(number) || Math.abs(number) > Number.MAX_SAFE_INTEGER) {
    throw new RangeError(tooLarge(text));
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

/**
 * Options of mysql2 for the same. `typeCast: true` means mysql2's own conversion: a function, such as Sequelize's, makes reading a row ten
 * times as expensive. Numbers that are too large arrive rounded; `checkedNumbers` finds them.
 */
export const MYSQL_NUMBERS = { typeCast: true, supportBigNumbers: false, decimalNumbers: true } as const;

/**
 * Rows of mysql2. A number that was rounded is above the largest exact one; no column has fractions, or larger numbers. Only `Database.select`
 * checks its rows: a migration that reads such numbers has to check them itself.
 *
 * @throws {StoreUnavailable} for a rounded number.
 */
export function checkedNumbers<Row extends object>(rows: Row[]): Row[] {
  for (const row of rows) {
    for (const value of Object.values(row)) {
      if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER) {
        throw new StoreUnavailable(tooLarge(`about ${value}`));
      }
    }
  }
  return rows;
}

const tooLarge = (number: string) =>
  `the database contains the number ${number}, which is too large for an exact JavaScript number`;
