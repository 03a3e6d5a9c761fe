/** Whether this installation has SQLite. A daemon that uses a database server does not need it. */
import sqlite3 from 'sqlite3';

/** SQLite cannot be used. The message says why, and what to do. */
export class SqliteUnavailable extends Error {
  override name = 'SqliteUnavailable';
}

/** Why SQLite cannot be used, and what to do; null if it can. See `loadNative`. */
export const whyNoSqlite = (): string | null => (sqlite3 as { unavailable?: string }).unavailable ?? null;

/** @throws {SqliteUnavailable} */
export function requireSqlite(): void {
  const why = whyNoSqlite();
  if (why !== null) throw new SqliteUnavailable(why);
}
