import type { Clock, Log, LogLevel } from './ports.js';

/** Kinds that are remembered at a time. */
const MAX_KINDS = 100;

interface Kind {
  count: number;
  nextAtMs: number;
}

/**
 * Rate limit for messages that anybody can trigger as often as they like, or that an outage repeats: each is logged at once, and then at most
 * once per interval.
 */
export class LogThrottle<Level extends LogLevel> {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #log: Pick<Log, Level>;
  readonly #intervalMs: number;
  readonly #kinds = new Map<string, Kind>();

  constructor(clock: Pick<Clock, 'monotonic'>, log: Pick<Log, Level>, intervalMs: number) {
    this.#clock = clock;
    this.#log = log;
    this.#intervalMs = intervalMs;
  }

  /**
   * @param fieldsOf gets the number of occurrences since the message was last logged.
   * @param kind each kind of occurrence has its own interval; default: the message.
   */
  record(level: Level, message: string, fieldsOf: (count: number) => object, kind = message): void {
    const nowMs = this.#clock.monotonic();
    let known = this.#kinds.get(kind);
    if (!known) {
      if (this.#kinds.size >= MAX_KINDS) this.#kinds.clear();
      this.#kinds.set(kind, (known = { count: 0, nextAtMs: -Infinity }));
    }
    known.count += 1;
    if (nowMs < known.nextAtMs) return;
    this.#log[level](message, fieldsOf(known.count));
    known.count = 0;
    known.nextAtMs = nowMs + this.#intervalMs;
  }
}
