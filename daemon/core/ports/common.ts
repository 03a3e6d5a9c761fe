/** Ports that all of the core uses: clock, log, pages of lists, scopes, and errors of the database. */
import type { AuditActor } from '../../api/vocabulary.js';

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

/** What one request may concern. What is outside of it does not exist for the caller. */
export interface Scope {
  /** IDs; null: all projects. */
  projects: readonly string[] | null;
  /** Only tokens that this actor has issued; null: by anybody. */
  issuedBy: AuditActor | null;
}

/** The database cannot be reached, is full, locked or not migrated. Carries no bind values. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable';
}

/** The database answers, and refuses what llmp needs until an operator corrects something. The message says both. */
export class StoreRefused extends StoreUnavailable {
  override name = 'StoreRefused';
  readonly what: string;
  readonly advice: string;
  /** Whether only a change of the settings or of privileges ends it. */
  readonly isLasting: boolean;

  /** @param what what the database refuses, without a full stop. @param advice what to do. */
  constructor(what: string, advice: string, isLasting = true) {
    super(`${what}. ${advice}`);
    this.what = what;
    this.advice = advice;
    this.isLasting = isLasting;
  }
}

/** A value that must be unique is taken. */
export class StoreConflict extends Error {
  override name = 'StoreConflict';
}

/** Position in a sorted list: sort value and ID of the last row of a page. */
export interface Position {
  value: string | number;
  id: string;
}

export interface PageRequest {
  limit: number;
  after: Position | null;
}

export interface PageOf<T> {
  rows: T[];
  /** Null on the last page. */
  next: Position | null;
  /** Number of rows on all pages, slightly out of date for very long lists; null if they are not counted. */
  total: number | null;
}
