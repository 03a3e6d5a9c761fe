/** What everything in the core asks for: time, a log; and how a database fails. */

export interface Clock {
  /** Wall time in ms since the epoch: expiry and time stamps. */
  now(): number;
  /** ms on a clock that never jumps: ages, windows, waits. */
  monotonic(): number;
  /** Runs `action` once after `ms`, unless the returned function is called before. Does not keep the process alive. */
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
