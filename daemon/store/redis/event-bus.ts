/**
 * The bus of several instances: a stream in Redis. Batches go out one at a time, on a connection of their own, and a batch is
 * sent until Redis has taken it. When it is not known whether it has, it is sent again: then an event is there twice, with one
 * id. Nobody waits for any of this but the buffer, which is bounded.
 */
import { EventBuffer } from '../../core/event-buffer.js';
import type { Happening } from '../../core/events.js';
import type { Clock, EventBus, EventCounts, Log, PublishedEvent } from '../../core/ports.js';
import { eventText } from '../event-text.js';
import type { RedisAddress } from './address.js';
import { RedisAway, RedisConnection } from './connection.js';
import { ADD } from './event-scripts.js';
import { RedisEventStream } from './event-stream.js';
import { StreamWatch } from './stream-watch.js';

const COMMAND_MS = 2_000;
const MOST_CHARACTERS = 1_000_000;
const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 2_000;
const FLUSH_WITHIN_MS = 2_000;

export interface RedisEventBusOptions {
  address: RedisAddress;
  instance: string;
  key: string;
  /** How many events the stream keeps, or a few more. */
  maxLength: number;
  bufferSize: number;
  clock: Clock;
  log: Log;
  /** How long a batch may take; 2 s unless a test is about something else. */
  commandMs?: number;
}

export class RedisEventBus implements EventBus {
  readonly backend = 'redis';
  readonly #options: RedisEventBusOptions;
  readonly #connection: RedisConnection;
  readonly #buffer: EventBuffer;
  readonly #watch: StreamWatch;
  readonly #stream: RedisEventStream;
  #published = 0;
  #failed = 0;
  #isRefused = false;
  #isClosed = false;
  #endPause: () => void = () => undefined;

  constructor(options: RedisEventBusOptions) {
    const { address, key, bufferSize, clock, log, commandMs = COMMAND_MS } = options;
    this.#options = options;
    const connection = new RedisConnection({ address, clock, log, commandMs, purpose: 'events' });
    this.#connection = connection;
    this.#buffer = new EventBuffer({ size: bufferSize, clock, log, send: (batch) => this.#send(batch) });
    this.#watch = new StreamWatch({ connection, key, clock, log });
    this.#stream = new RedisEventStream({ address, key, clock, log, connection });
  }

  /** Resolves, in half a second or so, when the first try is over, good or not. */
  open(): Promise<void> {
    return this.#connection.open();
  }

  get isFailing(): boolean {
    return this.#isRefused || !this.#connection.isUp;
  }

  get counts(): EventCounts {
    return {
      published: this.#published,
      dropped: this.#buffer.dropped,
      failed: this.#failed,
      buffered: this.#buffer.size,
      lag: this.#watch.lag,
      trimmedUnread: this.#watch.trimmedUnread,
    };
  }

  publish(happening: Happening): void {
    this.#buffer.push(happening);
  }

  follow(after: string | null, signal: AbortSignal): AsyncIterable<readonly PublishedEvent[]> {
    return this.#stream.follow(after, signal);
  }

  async close(): Promise<void> {
    this.#watch.close();
    await this.#buffer.close(this.isFailing ? 0 : FLUSH_WITHIN_MS);
    this.#isClosed = true;
    this.#endPause();
    this.#connection.close();
  }

  async #send(batch: readonly Happening[]): Promise<void> {
    let texts: string[] = [];
    let characters = 0;
    for (const happening of batch) {
      const text = eventText(happening, this.#options.instance);
      texts.push(text);
      characters += text.length;
      if (characters < MOST_CHARACTERS) continue;
      await this.#add(texts);
      texts = [];
      characters = 0;
    }
    await this.#add(texts);
  }

  /** Until Redis has them, or we are closed. */
  async #add(texts: readonly string[]): Promise<void> {
    let left = texts;
    let delayMs = FIRST_DELAY_MS;
    while (left.length > 0 && !this.#isClosed) {
      const added = await this.#tryToAdd(left);
      left = left.slice(added);
      this.#published += added;
      if (added > 0) delayMs = FIRST_DELAY_MS;
      if (left.length === 0) return;
      // While it is away a look costs nothing.
      await this.#pause(this.#connection.isUp ? delayMs : FIRST_DELAY_MS);
      delayMs = Math.min(2 * delayMs, LONGEST_DELAY_MS);
    }
  }

  /** @returns how many Redis has taken. */
  async #tryToAdd(texts: readonly string[]): Promise<number> {
    const { key, maxLength } = this.#options;
    if (!this.#connection.isUp) return 0;
    try {
      const added = (await this.#connection.run(ADD, [key, maxLength, ...texts])) as number;
      this.#isRefused = false;
      return added;
    } catch (error) {
      this.#failed += 1;
      if (!(error instanceof RedisAway)) this.#isRefused = true;
      // The answer may still be on its way. On another connection the batch is there twice at most, not once more for each try.
      else this.#connection.abandon(error);
      return 0;
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(ms, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }
}
