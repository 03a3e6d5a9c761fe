/**
 * Reader of the event stream for all followers in this process. New events are read on a separate connection, because its reads
 * block. That connection exists only while there are followers, and the most recent events stay in memory. A follower that is
 * further behind reads older events on the non-blocking connection, as far as Redis still has them.
 */
import { parseStreamId } from '../../core/events.js';
import type { Clock, FollowStart, Log, PublishedEvent } from '../../core/ports.js';
import { RecentEvents } from '../recent-events.js';
import { StoredEvent } from '../stored-event.js';
import type { RedisAddress } from './address.js';
import { RedisConnection } from './connection.js';

const BLOCK_MS = 1_000;
const COMMAND_MS = 5_000; // Much longer than BLOCK_MS, because the machine may be busy.
const READ_AT_ONCE = 50; // With captured bodies an event can have half a megabyte.
const MAX_READ_AT_ONCE = 1_000;
const CHARACTERS_AT_ONCE = 1_000_000;
// Redis numbers the entries by its own clock.
const MAX_CLOCK_DIFFERENCE_MS = 60_000;
const MAX_EVENTS = 1_000;
const MAX_BYTES = 8_000_000;
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
  #newest: NewestEvents | null = null;

  constructor(options: EventStreamOptions) {
    this.#options = options;
  }

  async *follow(start: FollowStart, signal: AbortSignal): AsyncGenerator<readonly PublishedEvent[]> {
    this.#followers += 1;
    this.#newest ??= new NewestEvents(this.#options);
    try {
      yield* this.#newest.recent.follow(positionBefore(start), signal, (streamId) => this.#readOlder(streamId));
    } finally {
      this.#followers -= 1;
      if (this.#followers === 0) this.#stopReading();
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

  #stopReading(): void {
    this.#newest?.close();
    this.#newest = null;
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

/** Reads new events into memory. */
class NewestEvents {
  readonly #options: EventStreamOptions;
  readonly #connection: RedisConnection;
  readonly recent: RecentEvents;
  #isClosed = false;

  constructor(options: EventStreamOptions) {
    const { address, clock, log } = options;
    this.#options = options;
    this.recent = new RecentEvents({ clock, maxEvents: MAX_EVENTS, maxBytes: MAX_BYTES });
    this.#connection = new RedisConnection({ address, clock, log, commandMs: COMMAND_MS, purpose: 'events-reader' });
    void this.#read();
  }

  close(): void {
    this.#isClosed = true;
    this.#connection.close();
  }

  async #read(): Promise<void> {
    const { recent } = this;
    await this.#connection.open();
    while (!this.#isClosed) {
      try {
        if (recent.end === null) recent.beginAt(await this.#endOfStream());
        for (const { streamId, json } of await this.#readAfter(recent.end ?? '0-0')) recent.append(streamId, json);
      } catch {
        await new Promise<void>((resolve) => this.#options.clock.after(RETRY_MS, resolve));
      }
      recent.wake();
    }
  }

  async #endOfStream(): Promise<string> {
    const newest = await this.#connection.call('XREVRANGE', [this.#options.key, '+', '-', 'COUNT', 1]);
    return eventsFrom(newest)[0]?.streamId ?? '0-0';
  }

  async #readAfter(streamId: string): Promise<StoredEvent[]> {
    const args = ['COUNT', READ_AT_ONCE, 'BLOCK', BLOCK_MS, 'STREAMS', this.#options.key, streamId];
    const reply = (await this.#connection.call('XREAD', args)) as [key: Buffer, entries: unknown][] | null;
    return eventsFrom(reply?.[0]?.[1]);
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
