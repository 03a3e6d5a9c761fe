/** The most recent events of a bus, for followers and lists: their JSON, in memory. */
import { compareStreamIds } from '../core/events.js';
import type { Clock, PublishedEvent } from '../core/ports.js';
import { Wakeup } from '../core/wakeup.js';
import { StoredEvent } from './stored-event.js';

/** Memory for small events is allocated for this many bytes at a time. */
const BLOCK_BYTES = 256 * 1024;
const MAX_SMALL_BYTES = BLOCK_BYTES / 8;
/** Events that are read at once. */
const MAX_BATCH = 100;
const SPACE = 0x20;

export interface RecentEventsOptions {
  clock: Pick<Clock, 'after'>;
  maxEvents: number;
  /** Maximum size of all events together, in bytes. Beyond it, and beyond `maxEvents`, the oldest ones are dropped. */
  maxBytes: number;
}

/** Memory for the bytes of several events. */
interface Block {
  bytes: Buffer;
  length: number;
  /** Events in it that were not dropped. */
  events: number;
}

/** Where an event is: its stream ID, a space, and its JSON. */
interface Place {
  block: Block;
  from: number;
  to: number;
}

/** Reads events after a position that are older than all events in memory; none if there are no such events. */
export type ReadOlder = (streamId: string) => Promise<readonly PublishedEvent[]>;

/**
 * The events are bytes in blocks: as objects or strings, the garbage collector would have to move each of them to the old generation,
 * which was most of its pauses.
 */
export class RecentEvents {
  readonly #options: RecentEventsOptions;
  // The event with number N is in slot N modulo the maximum number of events.
  readonly #blocks: (Block | null)[];
  readonly #starts: Uint32Array;
  readonly #ends: Uint32Array;
  /** Number of the oldest event, and of the next one. */
  #oldest = 0;
  #next = 0;
  #bytes = 0;
  /** The one that events are added to. */
  #open: Block = newBlock(0);
  /** A block without events. New memory all the time would cause full garbage collections. */
  #spare: Block | null = null;
  readonly #changed: Wakeup;
  /** What was read last: followers that wait together get the same events. */
  #read: { first: number; end: number; events: readonly StoredEvent[] } = { first: 0, end: 0, events: [] };
  /** All events after this position were added here. Null, like the end, until the end of the stream is known. */
  #beginning: string | null = null;
  /** The position of the last event. */
  #end: string | null = null;

  constructor(options: RecentEventsOptions) {
    this.#options = options;
    this.#changed = new Wakeup(options.clock);
    this.#blocks = Array<Block | null>(options.maxEvents).fill(null);
    this.#starts = new Uint32Array(options.maxEvents);
    this.#ends = new Uint32Array(options.maxEvents);
  }

  get end(): string | null {
    return this.#end;
  }

  /** Call before the first event. @param position the end of the stream. */
  beginAt(position: string): void {
    this.#beginning = this.#end = position;
  }

  /** @param streamId after those of all other events. @param json on one line; empty for an entry that is not an event. */
  append(streamId: string, json: string): void {
    const text = `${streamId} ${json}`;
    const bytes = Buffer.byteLength(text);
    const { maxEvents, maxBytes } = this.#options;
    this.#end = streamId;
    if (this.#next - this.#oldest === maxEvents) this.#dropOldest();
    while (this.#next > this.#oldest && this.#bytes + bytes > maxBytes) this.#dropOldest();
    if (bytes > maxBytes) {
      this.#beginning = streamId;
      return;
    }
    const block = this.#blockFor(bytes);
    const slot = this.#next % maxEvents;
    this.#blocks[slot] = block;
    this.#starts[slot] = block.length;
    block.length += block.bytes.write(text, block.length);
    block.events += 1;
    this.#ends[slot] = block.length;
    this.#next += 1;
    this.#bytes += bytes;
  }

  /** Whether a follower waits for the next event. */
  get isAwaited(): boolean {
    return this.#changed.isAwaited;
  }

  /** Call when there may be more events, or when older ones may be readable again. */
  wake(): void {
    this.#changed.wake();
  }

  /** The events after a position, and new ones as they come, until the signal is aborted. @param position null: new ones only. */
  async *follow(
    position: string | null,
    signal: AbortSignal,
    readOlder: ReadOlder,
  ): AsyncGenerator<readonly PublishedEvent[]> {
    let last = position;
    while (!signal.aborted) {
      last ??= this.#end;
      let events: readonly PublishedEvent[] = [];
      if (last !== null) {
        const recent = this.#after(last);
        events = recent ?? (await readOlder(last));
        // The events in between are no longer stored.
        if (recent === null && events.length === 0) events = this.#from(this.#oldest);
      }
      const newest = events.at(-1);
      // There must be no `await` between reading and waiting, or an event in between would not end the wait.
      if (newest === undefined) {
        await this.#changed.wait(signal);
      } else {
        last = newest.streamId;
        yield events.filter(({ json }) => json !== '');
      }
    }
  }

  /** The last events before a position, the newest first; null: the last ones. */
  before(position: string | null): readonly PublishedEvent[] {
    const end = position === null ? this.#next : this.#numberAt(position, 0);
    return this.#between(Math.max(this.#oldest, end - MAX_BATCH), end).toReversed();
  }

  /** @returns null if some events after this position may not be in memory. */
  #after(position: string): readonly StoredEvent[] | null {
    if (position === this.#end) return [];
    const known = this.#knownSince;
    if (known === null || compareStreamIds(position, known) < 0) return null;
    return this.#from(this.#numberAt(position, 1));
  }

  /** All events after this position are in memory; null if it is not known. */
  get #knownSince(): string | null {
    if (this.#oldest === 0) return this.#beginning;
    return this.#oldest < this.#next ? this.#idOf(this.#oldest) : null;
  }

  #from(first: number): readonly StoredEvent[] {
    return this.#between(first, Math.min(this.#next, first + MAX_BATCH));
  }

  /** Number of the first event whose stream ID is at least (`least` 0) or above (1) this one. */
  #numberAt(streamId: string, least: 0 | 1): number {
    let [low, high] = [this.#oldest, this.#next];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (compareStreamIds(this.#idOf(middle), streamId) >= least) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #between(first: number, end: number): readonly StoredEvent[] {
    if (this.#read.first !== first || this.#read.end !== end) {
      const events = Array.from({ length: end - first }, (_, index) => this.#eventOf(first + index));
      this.#read = { first, end, events };
    }
    return this.#read.events;
  }

  #eventOf(number: number): StoredEvent {
    const { block, from, to } = this.#placeOf(number);
    const streamId = this.#idOf(number);
    return new StoredEvent(streamId, block.bytes.toString('utf8', from + streamId.length + 1, to));
  }

  #idOf(number: number): string {
    const { block, from } = this.#placeOf(number);
    return block.bytes.toString('latin1', from, block.bytes.indexOf(SPACE, from));
  }

  #placeOf(number: number): Place {
    const slot = number % this.#options.maxEvents;
    return { block: this.#blocks[slot] ?? this.#open, from: this.#starts[slot] ?? 0, to: this.#ends[slot] ?? 0 };
  }

  #blockFor(bytes: number): Block {
    if (bytes > MAX_SMALL_BYTES) return newBlock(bytes);
    if (this.#open.length + bytes <= this.#open.bytes.length) return this.#open;
    this.#open = this.#spare ?? newBlock(BLOCK_BYTES);
    this.#spare = null;
    return this.#open;
  }

  #dropOldest(): void {
    const { block, from, to } = this.#placeOf(this.#oldest);
    this.#blocks[this.#oldest % this.#options.maxEvents] = null;
    this.#oldest += 1;
    this.#bytes -= to - from;
    block.events -= 1;
    if (block.events > 0 || block === this.#open || block.bytes.length !== BLOCK_BYTES) return;
    block.length = 0;
    this.#spare = block;
  }
}

const newBlock = (bytes: number): Block => ({ bytes: Buffer.allocUnsafeSlow(bytes), length: 0, events: 0 });
