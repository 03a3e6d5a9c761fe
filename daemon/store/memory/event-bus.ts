/**
 * Event bus in memory, for an instance without Redis. Keeps the last 1,000 events for followers. Publishing only stores a reference
 * in a ring buffer; the JSON is created when a follower reads the event.
 */
import { parseStreamId } from '../../core/stream-id.js';
import { bodyCharacters, type PublishableEvent } from '../../core/events.js';
import type { Clock, EventBus, EventCounts, PublishedEvent } from '../../core/ports.js';
import { eventText } from '../event-text.js';
import { StoredEvent, Waiters } from '../published.js';

const CAPACITY = 1_000;
const MAX_BODY_CHARACTERS = 16_000_000;
const MAX_BATCH = 100;
const GATHER_MS = 20; // Each wake-up costs one write per follower.

export class MemoryEventBus implements EventBus {
  readonly backend = 'memory';
  readonly isFailing = false;
  readonly #instance: string;
  readonly #clock: Clock;
  /** Part of every position, so that positions from an earlier process are recognised. */
  readonly #sinceMs: number;
  /** The event with number N is at index N modulo the capacity. */
  readonly #ring = Array<PublishableEvent | null>(CAPACITY).fill(null);
  /** Serialised events by the same index, for events that a follower has read. */
  readonly #rendered = Array<StoredEvent | null>(CAPACITY).fill(null);
  readonly #followers = new Waiters();
  #isGathering = false;
  /** Number of the next event, starting from 1. */
  #next = 1;
  /** Number of the oldest event in the ring. */
  #oldest = 1;
  #bodyCharacters = 0;

  constructor(instance: string, clock: Clock) {
    this.#instance = instance;
    this.#clock = clock;
    this.#sinceMs = clock.now();
  }

  get counts(): EventCounts {
    return { published: this.#next - 1, dropped: 0, failed: 0, buffered: 0, lag: null, trimmedUnread: 0 };
  }

  publish(event: PublishableEvent): void {
    if (this.#next - this.#oldest === CAPACITY) this.#evictOldest();
    this.#ring[this.#next % CAPACITY] = event;
    this.#next += 1;
    this.#bodyCharacters += bodyCharacters(event);
    while (this.#bodyCharacters > MAX_BODY_CHARACTERS) this.#evictOldest();
    if (this.#isGathering || !this.#followers.hasAny) return;
    this.#isGathering = true;
    this.#clock.after(GATHER_MS, () => {
      this.#isGathering = false;
      this.#followers.wake();
    });
  }

  async *follow(after: string | null, signal: AbortSignal): AsyncGenerator<readonly PublishedEvent[]> {
    let next = after === null ? this.#next : this.#numberAfter(after);
    while (!signal.aborted) {
      next = Math.max(next, this.#oldest);
      const end = Math.min(this.#next, next + MAX_BATCH);
      const events = [];
      for (; next < end; next++) events.push(...this.#at(next));
      if (events.length > 0) yield events;
      else await this.#followers.next(signal);
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #numberAfter(place: string): number {
    const [sinceMs, number] = parseStreamId(place) ?? [NaN, NaN];
    // A position from another process: all events in the ring are newer.
    return sinceMs === this.#sinceMs && number < this.#next ? number + 1 : this.#oldest;
  }

  #at(number: number): StoredEvent[] {
    const slot = number % CAPACITY;
    const event = this.#ring[slot];
    if (!event) return [];
    return [(this.#rendered[slot] ??= new StoredEvent(`${this.#sinceMs}-${number}`, eventText(event, this.#instance)))];
  }

  #evictOldest(): void {
    const slot = this.#oldest % CAPACITY;
    const event = this.#ring[slot];
    if (event) this.#bodyCharacters -= bodyCharacters(event);
    this.#ring[slot] = this.#rendered[slot] = null;
    this.#oldest += 1;
  }
}
