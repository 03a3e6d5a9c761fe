/**
 * Event bus for several instances: a Redis stream. Batches are sent one at a time, on a separate connection, and each batch is sent
 * until Redis has stored it. If it is not known whether Redis stored a batch, it is sent again; an event can then be in the stream
 * twice, with the same ID. Only the bounded buffer waits for this, never a request.
 */
import { Backoff } from '../../core/backoff.js';
import { EventBuffer } from '../../core/event-buffer.js';
import type { PublishableEvent } from '../../core/events.js';
import type { Clock, EventBus, EventCounts, FollowStart, Log, PublishedEvent } from '../../core/ports.js';
import { Wakeup } from '../../core/wakeup.js';
import { eventText } from '../event-text.js';
import type { RedisAddress } from './address.js';
import { RedisUnavailable, RedisConnection, type Script } from './connection.js';
import { RedisEventStream } from './event-stream.js';
import { StreamMonitor } from './stream-monitor.js';

const COMMAND_MS = 2_000;
const MAX_CHARACTERS = 1_000_000;
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 2_000;
const FLUSH_WITHIN_MS = 2_000;

/**
 * Adds events in order. Arguments: key, maximum stream length, events. Stops at the first event that cannot be added: returns the
 * error if it is the first event, otherwise the number of events added before it.
 */
const ADD_EVENTS: Script = {
  name: 'llmpAddEvents',
  lua: `
local key, length = ARGV[1], ARGV[2]
for i = 3, #ARGV do
  local reply = redis.pcall('XADD', key, 'MAXLEN', '~', length, '*', 'event', ARGV[i])
  if type(reply) == 'table' and reply.err then
    if i == 3 then return reply end
    return i - 3
  end
end
return #ARGV - 2
`,
};

export interface RedisEventBusOptions {
  address: RedisAddress;
  instance: string;
  key: string;
  /** Approximate maximum length of the stream, in events. */
  maxLength: number;
  bufferSize: number;
  clock: Clock;
  log: Log;
  /** Timeout of a batch in ms. Default: 2 s. */
  commandMs?: number;
}

export class RedisEventBus implements EventBus {
  readonly backend = 'redis';
  readonly #options: RedisEventBusOptions;
  readonly #connection: RedisConnection;
  readonly #buffer: EventBuffer;
  readonly #monitor: StreamMonitor;
  readonly #stream: RedisEventStream;
  #published = 0;
  #failed = 0;
  #isRefused = false;
  #isClosed = false;
  readonly #backoff = new Backoff(FIRST_DELAY_MS, MAX_DELAY_MS);
  readonly #closing: Wakeup;

  constructor(options: RedisEventBusOptions) {
    const { address, key, bufferSize, clock, log, commandMs = COMMAND_MS } = options;
    this.#options = options;
    this.#closing = new Wakeup(clock);
    const connection = new RedisConnection({ address, clock, log, commandMs, purpose: 'events' });
    this.#connection = connection;
    this.#buffer = new EventBuffer({ size: bufferSize, clock, log, send: (batch) => this.#send(batch) });
    this.#monitor = new StreamMonitor({ connection, key, clock, log });
    this.#stream = new RedisEventStream({ address, key, clock, log, connection });
  }

  /** Resolves after the first connection attempt, within about half a second, whether it succeeded or not. */
  open(): Promise<void> {
    return this.#connection.open();
  }

  get isFailing(): boolean {
    return this.#isRefused || !this.#connection.isReady;
  }

  get counts(): EventCounts {
    return {
      published: this.#published,
      dropped: this.#buffer.dropped,
      failed: this.#failed,
      buffered: this.#buffer.size,
      lag: this.#monitor.lag,
      trimmedUnread: this.#monitor.trimmedUnread,
    };
  }

  publish(event: PublishableEvent): void {
    this.#buffer.push(event);
  }

  follow(start: FollowStart, signal: AbortSignal): AsyncIterable<readonly PublishedEvent[]> {
    return this.#stream.follow(start, signal);
  }

  stored(before: string | null, sinceMs: number): AsyncIterable<readonly PublishedEvent[]> {
    return this.#stream.stored(before, sinceMs);
  }

  async close(): Promise<void> {
    this.#monitor.close();
    await this.#buffer.close(this.isFailing ? 0 : FLUSH_WITHIN_MS);
    this.#isClosed = true;
    this.#closing.wake();
    this.#connection.close();
  }

  async #send(batch: readonly PublishableEvent[]): Promise<void> {
    let texts: string[] = [];
    let characters = 0;
    for (const event of batch) {
      const text = eventText(event, this.#options.instance);
      texts.push(text);
      characters += text.length;
      if (characters < MAX_CHARACTERS) continue;
      await this.#add(texts);
      texts = [];
      characters = 0;
    }
    await this.#add(texts);
  }

  /** Retries until Redis has stored all events or the bus is closed. */
  async #add(texts: readonly string[]): Promise<void> {
    let left = texts;
    while (left.length > 0 && !this.#isClosed) {
      const added = await this.#tryToAdd(left);
      left = left.slice(added);
      this.#published += added;
      if (added > 0) this.#backoff.reset();
      if (left.length === 0) return;
      // While Redis is unavailable, checking again costs nothing.
      await this.#closing.wait(this.#connection.isReady ? this.#backoff.next() : FIRST_DELAY_MS);
    }
  }

  /** @returns how many events Redis stored. */
  async #tryToAdd(texts: readonly string[]): Promise<number> {
    const { key, maxLength } = this.#options;
    if (!this.#connection.isReady) return 0;
    try {
      const added = (await this.#connection.run(ADD_EVENTS, [key, maxLength, ...texts])) as number;
      this.#isRefused = false;
      return added;
    } catch (error) {
      this.#failed += 1;
      if (!(error instanceof RedisUnavailable)) this.#isRefused = true;
      // The reply may still arrive. A new connection limits this to one duplicate of the batch instead of one per retry.
      else this.#connection.abandon(error);
      return 0;
    }
  }
}
