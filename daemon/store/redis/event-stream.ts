/**
 * Follows the stream of events for all who want to here. New events are read on a connection of its own, for its reads block,
 * that is there only while anybody follows; the last of them are kept. Who is behind those reads older ones where nothing
 * blocks, as far as Redis has them.
 */
import { comparePlaces, placeFrom } from '../../core/event-places.js';
import type { Clock, Log, PublishedEvent } from '../../core/ports.js';
import { StoredEvent, Waiting } from '../published.js';
import type { RedisAddress } from './address.js';
import { RedisConnection } from './connection.js';

const BLOCK_MS = 1_000;
const COMMAND_MS = 5_000; // Well above, for the machine may be busy.
const READ_AT_ONCE = 50; // With bodies an event may have half a megabyte.
const KEPT_EVENTS = 1_000;
const KEPT_CHARACTERS = 8_000_000;
const TRY_AGAIN_AFTER_MS = 500;

export interface EventStreamOptions {
  address: RedisAddress;
  key: string;
  clock: Clock;
  log: Log;
  /** Where nothing blocks. */
  connection: RedisConnection;
}

export class RedisEventStream {
  readonly #options: EventStreamOptions;
  #followers = 0;
  #tail: Tail | null = null;

  constructor(options: EventStreamOptions) {
    this.#options = options;
  }

  async *follow(after: string | null, signal: AbortSignal): AsyncGenerator<readonly PublishedEvent[]> {
    this.#followers += 1;
    const tail = (this.#tail ??= new Tail(this.#options));
    try {
      let place = after;
      while (!signal.aborted) {
        place ??= tail.end;
        const events = place === null ? [] : await this.#behind(place, tail);
        const last = events.at(-1);
        if (last) {
          place = last.place;
          yield events.filter(({ json }) => json !== '');
        } else {
          await tail.next(signal);
        }
      }
    } finally {
      this.#followers -= 1;
      if (this.#followers === 0) this.#endTail();
    }
  }

  async #behind(place: string, tail: Tail): Promise<readonly StoredEvent[]> {
    const kept = tail.behind(place);
    if (kept) return kept;
    const older = await this.#older(place);
    // What was between is not there any more.
    return older.length > 0 || tail.start === null ? older : (tail.behind(tail.start) ?? []);
  }

  /** Nothing while Redis is away: whoever follows looks again soon. */
  async #older(place: string): Promise<StoredEvent[]> {
    const { connection, key } = this.#options;
    const [ms, seq] = placeFrom(place) ?? [0, -1];
    try {
      return eventsFrom(await connection.call('XRANGE', [key, `${ms}-${seq + 1}`, '+', 'COUNT', READ_AT_ONCE]));
    } catch {
      return [];
    }
  }

  #endTail(): void {
    this.#tail?.close();
    this.#tail = null;
  }
}

/** The newest events, without a gap from `start` to `end`. */
class Tail {
  readonly #options: EventStreamOptions;
  readonly #connection: RedisConnection;
  readonly #waiting = new Waiting();
  #events: StoredEvent[] = [];
  #characters = 0;
  #isClosed = false;
  /** The place in front of the first, and that of the last; null until Redis has said where its stream ends. */
  start: string | null = null;
  end: string | null = null;

  constructor(options: EventStreamOptions) {
    const { address, clock, log } = options;
    this.#options = options;
    this.#connection = new RedisConnection({ address, clock, log, commandMs: COMMAND_MS, purpose: 'events-reader' });
    void this.#read();
  }

  /** @returns null when what is behind it is not all here. */
  behind(place: string): StoredEvent[] | null {
    if (this.start === null || comparePlaces(place, this.start) < 0) return null;
    let first = this.#events.length;
    while (first > 0 && comparePlaces(this.#events[first - 1]?.place ?? '', place) > 0) first -= 1;
    return this.#events.slice(first);
  }

  /** Resolves when there may be more, or Redis may be back. */
  next(signal: AbortSignal): Promise<void> {
    return this.#waiting.next(signal);
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
        this.#keep(await this.#newer(this.end));
      } catch {
        await new Promise<void>((resolve) => this.#options.clock.after(TRY_AGAIN_AFTER_MS, resolve));
      }
      this.#waiting.wake();
    }
  }

  async #endOfStream(): Promise<string> {
    const newest = await this.#connection.call('XREVRANGE', [this.#options.key, '+', '-', 'COUNT', 1]);
    return eventsFrom(newest)[0]?.place ?? '0-0';
  }

  async #newer(place: string): Promise<StoredEvent[]> {
    const args = ['COUNT', READ_AT_ONCE, 'BLOCK', BLOCK_MS, 'STREAMS', this.#options.key, place];
    const reply = (await this.#connection.call('XREAD', args)) as [key: Buffer, entries: unknown][] | null;
    return eventsFrom(reply?.[0]?.[1]);
  }

  #keep(events: readonly StoredEvent[]): void {
    for (const event of events) {
      this.#events.push(event);
      this.#characters += event.json.length;
      this.end = event.place;
    }
    let left = 0;
    while (this.#events.length - left > KEPT_EVENTS || this.#characters > KEPT_CHARACTERS) {
      const oldest = this.#events[left];
      if (!oldest) break;
      this.#characters -= oldest.json.length;
      this.start = oldest.place;
      left += 1;
    }
    this.#events.splice(0, left);
  }
}

/** @param entries as XRANGE gives them: each a place, and names and values in turn. */
function eventsFrom(entries: unknown): StoredEvent[] {
  return ((entries ?? []) as [Buffer, Buffer[]][]).map(([place, fields]) => {
    const at = fields.findIndex((name, index) => index % 2 === 0 && name.toString() === 'event');
    const json = fields[at + 1]?.toString() ?? '';
    // What somebody else put there has its place and no more; one of several lines would be taken for several fields.
    return new StoredEvent(place.toString(), at === -1 || /[\r\n]/.test(json) ? '' : json);
  });
}
