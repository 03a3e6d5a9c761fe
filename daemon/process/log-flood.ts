/**
 * What keeps a flood of records from filling the log and the memory: of warnings and errors that say the same, so many are
 * written in a second, and the others are counted; and while nobody takes what was written, none are.
 */
import type { LogLevel } from '../core/ports.js';

const MOST_A_SECOND = 200;
const MOST_MESSAGES = 500;
const MOST_WAITING_BYTES = 8 * 1024 * 1024;
const WINDOW_MS = 1_000;

interface Repeated {
  level: LogLevel;
  written: number;
  leftOut: number;
}

export class Flood {
  readonly #tell: (level: LogLevel, fields: object) => void;
  readonly #messages = new Map<string, Repeated>();
  #isTelling = false;
  #untaken = 0;

  /** @param tell writes how many records were left out. */
  constructor(tell: (level: LogLevel, fields: object) => void) {
    this.#tell = tell;
  }

  /** Whether a record is to be written. */
  lets(level: LogLevel, message: string, stream: NodeJS.WritableStream): boolean {
    if (isBlocked(stream)) {
      this.#untaken += 1;
      this.#tellLater();
      return false;
    }
    if (level !== 'error' && level !== 'warn') return true;
    const repeated = this.#repeated(level, message);
    if (repeated.written < MOST_A_SECOND) {
      repeated.written += 1;
      return true;
    }
    repeated.leftOut += 1;
    return false;
  }

  #repeated(level: LogLevel, message: string): Repeated {
    this.#tellLater();
    // Beyond so many different ones all others are one.
    const key = this.#messages.size < MOST_MESSAGES || this.#messages.has(message) ? message : 'others';
    const known = this.#messages.get(key);
    if (known) return known;
    const made: Repeated = { level, written: 0, leftOut: 0 };
    this.#messages.set(key, made);
    return made;
  }

  #tellLater(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    setTimeout(() => {
      this.#isTelling = false;
      const messages = [...this.#messages];
      this.#messages.clear();
      for (const [about, { level, leftOut }] of messages) if (leftOut > 0) this.#tell(level, { about, count: leftOut });
      if (this.#untaken > 0) this.#tell('warn', { about: 'what nobody took in time', count: this.#untaken });
      this.#untaken = 0;
    }, WINDOW_MS).unref();
  }
}

const isBlocked = (stream: NodeJS.WritableStream): boolean =>
  ((stream as { writableLength?: number }).writableLength ?? 0) > MOST_WAITING_BYTES;
