/**
 * Reader of the event stream for all followers in this process. New events are read on a separate connection, because its reads
 * block. That connection exists only while there are followers, and the most recent events stay in memory. A follower that is
 * further behind reads older events on the non-blocking connection, as far as Redis still has them.
 */
import { compareStreamIds, parseStreamId } from '../../core/stream-id.js';
import type { Clock, EventFacts, FollowStart, Log, PublishedEvent } from '../../core/ports.js';
import { Wakeup } from '../../core/wakeup.js';
import type { RedisAddress } from './address.js';
import { RedisConnection } from './connection.js';
import { factsOf } from '../event-facts.js';

const BLOCK_MS = 1_000;
const COMMAND_MS = 5_000; // Much longer than BLOCK_MS, because the machine may be busy.
const READ_AT_ONCE = 50; // With captured bodies an event can have half a megabyte.
const MAX_READ_AT_ONCE = 1_000;
const CHARACTERS_AT_ONCE = 1_000_000;
// Redis numbers the entries by its own clock.
const MAX_CLOCK_DIFFERENCE_MS = 60_000;
const MAX_EVENTS = 1_000;
const MAX_CHARACTERS = 8_000_000;
const RETRY_MS = 500;

export interface EventStreamOptions {
  address: RedisAddress;
  key: string;
  clock: Clock;
  log: Log;
  /** Connection without blocking commands. */
  connection: RedisConnection;
}

export class RedisEventStream {
  readonly #options: EventStreamOptions;
  #followers = 0;
  #recent: RecentEvents | null = null;

  constructor(options: EventStreamOptions) {
    this.#options = options;
  }

  async *follow(start: FollowStart, signal: AbortSignal): AsyncGenerator<readonly PublishedEvent[]> {
    this.#followers += 1;
    const recent = (this.#recent ??= new RecentEvents(this.#options));
    try {
      let streamId = positionBefore(start);
      while (!signal.aborted) {
        streamId ??= recent.end;
        const events = streamId === null ? [] : await this.#eventsAfter(streamId, recent);
        const last = events.at(-1);
        if (last) {
          streamId = last.streamId;
          yield events.filter(({ json }) => json !== '');
        } else {
          await recent.next(signal);
        }
      }
    } finally {
      this.#followers -= 1;
      if (this.#followers === 0) this.#closeRecent();
    }
  }

  /** The stored events, newest first. @throws {StoreUnavailable} */
  async *stored(before: string | null, sinceMs: number): AsyncGenerator<readonly StoredEvent[]> {
    const { connection, key } = this.#options;
    const first = positionBefore({ sinceMs }) ?? '-';
    let last = before === null ? '+' : predecessorOf(before);
    let count = READ_AT_ONCE;
    for (;;) {
      const events = eventsFrom(await connection.call('XREVRANGE', [key, last, first, 'COUNT', count]));
      const oldest = events.at(-1);
      if (!oldest) return;
      yield events.filter(({ json }) => json !== '');
      last = predecessorOf(oldest.streamId);
      const characters = events.reduce((sum, { json }) => sum + json.length, 1);
      const fitting = Math.floor((CHARACTERS_AT_ONCE * events.length) / characters);
      count = Math.max(READ_AT_ONCE, Math.min(MAX_READ_AT_ONCE, fitting));
    }
  }

  async #eventsAfter(streamId: string, recent: RecentEvents): Promise<readonly StoredEvent[]> {
    const buffered = recent.after(streamId);
    if (buffered) return buffered;
    const older = await this.#readOlder(streamId);
    // The events in between are no longer in the stream.
    return older.length > 0 || recent.start === null ? older : (recent.after(recent.start) ?? []);
  }

  /** Returns no events while Redis is unavailable: the follower retries soon. */
  async #readOlder(streamId: string): Promise<StoredEvent[]> {
    const { connection, key } = this.#options;
    const [ms, seq] = parseStreamId(streamId) ?? [0, -1];
    try {
      return eventsFrom(await connection.call('XRANGE', [key, `${ms}-${seq + 1}`, '+', 'COUNT', READ_AT_ONCE]));
    } catch {
      return [];
    }
  }

  #closeRecent(): void {
    this.#recent?.close();
    this.#recent = null;
  }
}

/** The position after which a follower begins; null: at the end of the stream. */
function positionBefore(start: FollowStart): string | null {
  if (start === null) return null;
  if ('after' in start) return start.after;
  return `${Math.max(0, Math.floor(start.sinceMs) - MAX_CLOCK_DIFFERENCE_MS)}-0`;
}

/** The greatest stream ID before this one, as the end of a range. */
function predecessorOf(streamId: string): string {
  const [ms, seq] = parseStreamId(streamId) ?? [0, 0];
  if (seq > 0) return `${ms}-${seq - 1}`;
  // Without a second number, the range includes all events of that millisecond.
  return String(Math.max(0, ms - 1));
}

/** The most recent events in memory, without a gap between `start` and `end`. */
class RecentEvents {
  readonly #options: EventStreamOptions;
  readonly #connection: RedisConnection;
  readonly #changed: Wakeup;
  #events: StoredEvent[] = [];
  #characters = 0;
  #isClosed = false;
  /** The position before the first event, and that of the last event; null until the end of the stream is known. */
  start: string | null = null;
  end: string | null = null;

  constructor(options: EventStreamOptions) {
    const { address, clock, log } = options;
    this.#options = options;
    this.#changed = new Wakeup(clock);
    this.#connection = new RedisConnection({ address, clock, log, commandMs: COMMAND_MS, purpose: 'events-reader' });
    void this.#read();
  }

  /** @returns null when some events after this position are not in memory. */
  after(streamId: string): StoredEvent[] | null {
    if (this.start === null || compareStreamIds(streamId, this.start) < 0) return null;
    let first = this.#events.length;
    while (first > 0 && compareStreamIds(this.#events[first - 1]?.streamId ?? '', streamId) > 0) first -= 1;
    return this.#events.slice(first);
  }

  /** Resolves when there may be more events, or when Redis may be available again. */
  next(signal: AbortSignal): Promise<void> {
    return this.#changed.wait(signal);
  }

  close(): void {
    this.#isClosed = true;
    this.#connection.close();
  }

  async #read(): Promise<void> {
    await this.#connection.open();
    while (!this.#isClosed) {
      try {
        this.end ??= this.start = await this.#endOfStream();
        this.#append(await this.#readNewer(this.end));
      } catch {
        await new Promise<void>((resolve) => this.#options.clock.after(RETRY_MS, resolve));
      }
      this.#changed.wake();
    }
  }

  async #endOfStream(): Promise<string> {
    const newest = await this.#connection.call('XREVRANGE', [this.#options.key, '+', '-', 'COUNT', 1]);
    return eventsFrom(newest)[0]?.streamId ?? '0-0';
  }

  async #readNewer(streamId: string): Promise<StoredEvent[]> {
    const args = ['COUNT', READ_AT_ONCE, 'BLOCK', BLOCK_MS, 'STREAMS', this.#options.key, streamId];
    const reply = (await this.#connection.call('XREAD', args)) as [key: Buffer, entries: unknown][] | null;
    return eventsFrom(reply?.[0]?.[1]);
  }

  #append(events: readonly StoredEvent[]): void {
    for (const event of events) {
      this.#events.push(event);
      this.#characters += event.json.length;
      this.end = event.streamId;
    }
    let left = 0;
    while (this.#events.length - left > MAX_EVENTS || this.#characters > MAX_CHARACTERS) {
      const oldest = this.#events[left];
      if (!oldest) break;
      this.#characters -= oldest.json.length;
      this.start = oldest.streamId;
      left += 1;
    }
    this.#events.splice(0, left);
  }
}

/** @param entries as XRANGE returns them: for each entry the ID, then field names and values in turn. */
function eventsFrom(entries: unknown): StoredEvent[] {
  return ((entries ?? []) as [Buffer, Buffer[]][]).map(([streamId, fields]) => {
    const at = fields.findIndex((name, index) => index % 2 === 0 && name.toString() === 'event');
    const json = fields[at + 1]?.toString() ?? '';
    // An entry of another program yields only its position. A line break in the JSON would end the data field of a server-sent
    // event.
    return new StoredEvent(streamId.toString(), at === -1 || /[\r\n]/.test(json) ? '' : json);
  });
}

/** A published event, as read back from the stream or from memory. */
export class StoredEvent implements PublishedEvent {
  readonly streamId: string;
  readonly json: string;
  #facts: EventFacts | null = null;

  constructor(streamId: string, json: string) {
    this.streamId = streamId;
    this.json = json;
  }

  /** Parsed once, on first use. */
  get facts(): EventFacts {
    return (this.#facts ??= factsOf(this.json));
  }
}
