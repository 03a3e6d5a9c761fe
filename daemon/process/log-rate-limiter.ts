/**
 * Rate limit of the log, so that a flood of records fills neither disk nor memory. Of warnings and errors with the same message, up to 200 are
 * written per second, and the others are only counted. While the reader of the log does not keep up, no records are written.
 */
import type { LogLevel } from '../core/ports.js';

const MAX_PER_SECOND = 200;
const MAX_MESSAGES = 500;
const MAX_UNREAD_BYTES = 8 * 1024 * 1024;
const WINDOW_MS = 1_000;

interface Repeated {
  level: LogLevel;
  written: number;
  dropped: number;
}

export class LogRateLimiter {
  readonly #report: (level: LogLevel, fields: object) => void;
  readonly #messages = new Map<string, Repeated>();
  #isReportScheduled = false;
  #unread = 0;

  /** @param report writes how many records were dropped. */
  constructor(report: (level: LogLevel, fields: object) => void) {
    this.#report = report;
  }

  /** Whether a record may be written. Counts it as dropped if not. */
  allows(level: LogLevel, message: string, stream: NodeJS.WritableStream): boolean {
    if (isBlocked(stream)) {
      this.#unread += 1;
      this.#scheduleReport();
      return false;
    }
    if (level !== 'error' && level !== 'warn') return true;
    const repeated = this.#repeated(level, message);
    if (repeated.written < MAX_PER_SECOND) {
      repeated.written += 1;
      return true;
    }
    repeated.dropped += 1;
    return false;
  }

  #repeated(level: LogLevel, message: string): Repeated {
    this.#scheduleReport();
    // Further messages share one counter.
    const key = this.#messages.size < MAX_MESSAGES || this.#messages.has(message) ? message : 'others';
    const known = this.#messages.get(key);
    if (known) return known;
    const made: Repeated = { level, written: 0, dropped: 0 };
    this.#messages.set(key, made);
    return made;
  }

  #scheduleReport(): void {
    if (this.#isReportScheduled) return;
    this.#isReportScheduled = true;
    setTimeout(() => {
      this.#isReportScheduled = false;
      const messages = [...this.#messages];
      this.#messages.clear();
      for (const [about, { level, dropped }] of messages)
        if (dropped > 0) this.#report(level, { about, count: dropped });
      if (this.#unread > 0)
        this.#report('warn', { about: 'records that the reader of the log did not read in time', count: this.#unread });
      this.#unread = 0;
    }, WINDOW_MS).unref();
  }
}

const isBlocked = (stream: NodeJS.WritableStream): boolean =>
  ((stream as { writableLength?: number }).writableLength ?? 0) > MAX_UNREAD_BYTES;
