/**
 * Buffer between requests and the event bus, so that no request waits for the bus.
 *
 * A request only appends to an array. Events are sent in batches, one batch at a time and in order. While the bus is unavailable, up
 * to `size` events are buffered. **Further events are dropped** and counted: the oldest ones are worth more, because they show what
 * led to the outage. Captured bodies have a separate limit, because an event with bodies can be a thousand times as large.
 */
import { bodyCharacters, type PublishableEvent } from './events.js';
import { LogThrottle } from './log-throttle.js';
import type { Clock, Log } from './ports.js';
import { withTimeout } from './timing.js';

const GATHER_MS = 20;
// Takes half a millisecond, in one turn of the event loop.
const MAX_BATCH = 128;
const MAX_BODY_CHARACTERS = 64_000_000;
const LOG_EVERY_MS = 60_000;

export interface EventBufferOptions {
  /** Maximum number of buffered events, including those being sent. */
  size: number;
  clock: Clock;
  log: Log;
  /** Sends a batch. May take any time and never rejects; the caller of `close` must also end a send in progress. */
  send: (batch: readonly PublishableEvent[]) => Promise<void>;
}

export class EventBuffer {
  readonly #options: EventBufferOptions;
  /** A batch of this size is sent without waiting for more events. */
  readonly #fullBatch: number;
  #waiting: PublishableEvent[] = [];
  #sending: readonly PublishableEvent[] = [];
  #bodyCharacters = 0;
  #dropped = 0;
  readonly #warnings: LogThrottle<'warn'>;
  #cancelGathering: (() => void) | null = null;
  #onEmpty: (() => void) | null = null;
  #isClosed = false;

  constructor(options: EventBufferOptions) {
    this.#options = options;
    this.#warnings = new LogThrottle(options.clock, options.log, LOG_EVERY_MS);
    this.#fullBatch = Math.min(MAX_BATCH, Math.ceil(options.size / 2));
  }

  /** Number of events waiting or being sent. */
  get size(): number {
    return this.#waiting.length + this.#sending.length;
  }

  /** Number of events dropped because the buffer was full or closed. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Does not wait and does not throw. */
  push(event: PublishableEvent): void {
    const characters = bodyCharacters(event);
    if (this.#isClosed || this.size >= this.#options.size || !this.#hasRoomFor(characters)) {
      this.#drop(1);
      return;
    }
    this.#bodyCharacters += characters;
    this.#waiting.push(event);
    if (this.#sending.length > 0) return;
    if (this.#waiting.length === this.#fullBatch) this.#sendIn(0);
    else if (this.#cancelGathering === null) this.#sendIn(GATHER_MS);
  }

  /** Accepts no more events and sends the buffered ones. Resolves when all are sent or after `withinMs`; the rest is dropped. */
  async close(withinMs: number): Promise<void> {
    this.#isClosed = true;
    if (this.size > 0) {
      const empty = new Promise<void>((resolve) => (this.#onEmpty = resolve));
      if (this.#sending.length === 0) void this.#sendBatch();
      await withTimeout(this.#options.clock, withinMs, empty, () => undefined);
    }
    const left = this.size;
    this.#cancelGathering?.();
    this.#waiting = [];
    if (left > 0) this.#drop(left);
  }

  #hasRoomFor(characters: number): boolean {
    return characters === 0 || this.#bodyCharacters + characters <= MAX_BODY_CHARACTERS;
  }

  #sendIn(ms: number): void {
    this.#cancelGathering?.();
    this.#cancelGathering = this.#options.clock.after(ms, () => {
      void this.#sendBatch();
    });
  }

  async #sendBatch(): Promise<void> {
    this.#cancelGathering?.();
    this.#cancelGathering = null;
    const batch = this.#waiting.splice(0, MAX_BATCH);
    this.#sending = batch;
    await this.#options.send(batch);
    this.#sending = [];
    for (const event of batch) this.#bodyCharacters -= bodyCharacters(event);
    if (this.#waiting.length === 0) this.#onEmpty?.();
    else if (this.#isClosed || this.#waiting.length >= this.#fullBatch) void this.#sendBatch();
    else this.#sendIn(GATHER_MS);
  }

  #drop(count: number): void {
    this.#dropped += count;
    this.#warnings.record('warn', 'event bus unavailable or too slow; dropping new events', () => ({
      droppedSoFar: this.#dropped,
    }));
  }
}
