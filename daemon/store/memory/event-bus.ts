/**
 * Event bus in memory, for an instance without Redis. It stores the last 10,000 events for followers and lists.
 *
 * Publishing only stores the record in a ring buffer; the JSON is created when a follower or a list reads the event, and then replaces
 * the record that it was created from. All events together have at most 16 million characters, so that long paths and captured bodies
 * store fewer events instead of taking more memory: usually the ring takes about 5 MB, and never more than 32 MB.
 */
import { parseStreamId } from '../../core/stream-id.js';
import type { PublishableEvent, RequestEnded } from '../../core/events.js';
import type { Clock, EventBus, EventCounts, FollowStart, PublishedEvent } from '../../core/ports.js';
import { Wakeup } from '../../core/wakeup.js';
import { charactersOf, MemoryEvent, type Publisher, USUAL_CHARACTERS } from './memory-event.js';
import { RequestColumns } from './request-columns.js';

const CAPACITY = 10_000;
const MAX_CHARACTERS = 16_000_000;
const MAX_BATCH = 100;
const GATHER_MS = 20; // Each wake-up costs one write per follower.

export class MemoryEventBus implements EventBus, Publisher {
  readonly backend = 'memory';
  readonly isFailing = false;
  readonly instance: string;
  /** Part of every position, so that positions from an earlier process are recognised. */
  readonly sinceMs: number;
  readonly #clock: Clock;
  // The event with number N is in slot N modulo the capacity: in the columns if its JSON was not created and it is a usual request,
  // otherwise in the ring.
  readonly #columns = new RequestColumns();
  readonly #ring = Array<MemoryEvent | null>(CAPACITY).fill(null);
  /** Characters of the event in each slot. */
  readonly #sizes = new Uint32Array(CAPACITY);
  readonly #published: Wakeup;
  #isGathering = false;
  /** Number of the next event, starting from 1. */
  #next = 1;
  /** Number of the oldest event in the ring. */
  #oldest = 1;
  #characters = 0;

  constructor(instance: string, clock: Clock) {
    this.instance = instance;
    this.#clock = clock;
    this.#published = new Wakeup(clock);
    this.sinceMs = clock.now();
  }

  get counts(): EventCounts {
    return { published: this.#next - 1, dropped: 0, failed: 0, buffered: 0, lag: null, trimmedUnread: 0 };
  }

  publish(published: PublishableEvent): void {
    if (this.#next - this.#oldest === CAPACITY) this.#evictOldest();
    const slot = this.#next % CAPACITY;
    const characters = charactersOf(published);
    if (published.kind === 'request' && isForColumns(published.ended, characters))
      this.#columns.put(slot, published.ended);
    else this.#ring[slot] = new MemoryEvent(this, this.#next, published);
    this.#next += 1;
    this.#sizes[slot] = characters;
    this.#characters += characters;
    while (this.#characters > MAX_CHARACTERS) this.#evictOldest();
    if (this.#isGathering || !this.#published.isAwaited) return;
    this.#isGathering = true;
    this.#clock.after(GATHER_MS, () => {
      this.#isGathering = false;
      this.#published.wake();
    });
  }

  async *follow(start: FollowStart, signal: AbortSignal): AsyncGenerator<readonly PublishedEvent[]> {
    let next = this.#startOf(start);
    while (!signal.aborted) {
      next = Math.max(next, this.#oldest);
      const end = Math.min(this.#next, next + MAX_BATCH);
      const events = this.#between(next, end);
      next = end;
      if (events.length > 0) yield events;
      else await this.#published.wait(signal);
    }
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- The port is asynchronous for Redis.
  async *stored(before: string | null): AsyncGenerator<readonly PublishedEvent[]> {
    let end = before === null ? this.#next : this.#numberOf(before);
    while (end !== null && end > this.#oldest) {
      const first = Math.max(this.#oldest, end - MAX_BATCH);
      yield this.#between(first, end).reverse();
      end = first;
    }
  }

  rendered(number: number): MemoryEvent | null {
    return number < this.#oldest ? null : (this.#ring[number % CAPACITY] ?? null);
  }

  onRendered(event: MemoryEvent, characters: number): void {
    if (event.number < this.#oldest) return;
    const slot = event.number % CAPACITY;
    this.#columns.clear(slot);
    this.#ring[slot] = event;
    this.#characters += characters - (this.#sizes[slot] ?? 0);
    this.#sizes[slot] = characters;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #startOf(start: FollowStart): number {
    if (start === null) return this.#next;
    // All events, or a position from another process: then all events in the ring are newer.
    if ('sinceMs' in start) return this.#oldest;
    const number = this.#numberOf(start.after);
    return number === null ? this.#oldest : number + 1;
  }

  /** @returns null for a position that no event of this process has. */
  #numberOf(position: string): number | null {
    const [sinceMs, number] = parseStreamId(position) ?? [NaN, NaN];
    return sinceMs === this.sinceMs && number < this.#next ? number : null;
  }

  #between(first: number, end: number): PublishedEvent[] {
    const events = [];
    for (let number = first; number < end; number++) {
      const event = this.#ring[number % CAPACITY] ?? this.#eventInColumns(number);
      if (event) events.push(event);
    }
    return events;
  }

  #eventInColumns(number: number): MemoryEvent | null {
    const ended = this.#columns.at(number % CAPACITY);
    return ended && new MemoryEvent(this, number, { kind: 'request', ended });
  }

  #evictOldest(): void {
    const slot = this.#oldest % CAPACITY;
    this.#characters -= this.#sizes[slot] ?? 0;
    this.#sizes[slot] = 0;
    this.#ring[slot] = null;
    this.#columns.clear(slot);
    this.#oldest += 1;
  }
}

/** Without bodies, and with a path of usual length. */
const isForColumns = ({ requestBody, responseBody }: RequestEnded, characters: number) =>
  requestBody === null && responseBody === null && characters <= USUAL_CHARACTERS + 500;
