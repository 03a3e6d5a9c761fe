/** Ports that all of the core uses: clock, log, and errors of the database. */

export interface Clock {
  /** Wall time in ms since the epoch, for expiry and time stamps. */
  now(): number;
  /** Monotonic time in ms, for ages, windows and timeouts. */
  monotonic(): number;
  /** Runs `action` once after `ms`, unless the returned function is called first. The timer does not keep the process alive. */
  after(ms: number, action: () => void): () => void;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type Log = Record<LogLevel, (message: string, fields?: object) => void>;

/** The database cannot be reached, is full, locked or not migrated. Carries no bind values. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable';
}

/** A value that must be unique is taken. */
export class StoreConflict extends Error {
  override name = 'StoreConflict';
}
