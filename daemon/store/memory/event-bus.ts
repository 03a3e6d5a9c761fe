/**
 * The bus of an instance that shares it with nobody: the last events, for whoever follows them. What a request pays is one
 * place in a ring; the text of an event is made when somebody wants it.
 */
import { placeFrom } from '../../core/event-places.js';
import { bodyCharacters, type Happening } from '../../core/events.js';
import type { Clock, EventBus, EventCounts, PublishedEvent } from '../../core/ports.js';
import { eventText } from '../event-text.js';
import { StoredEvent, Waiting } from '../published.js';

const KEPT = 1_000;
const MOST_BODY_CHARACTERS = 16_000_000;
const MOST_AT_ONCE = 100;
const GATHER_MS = 20; // A follower costs a write for each time it is woken.

export class MemoryEventBus implements EventBus {
  readonly backend = 'memory';
  readonly isFailing = false;
  readonly #instance: string;
  readonly #clock: Clock;
  /** Of all places, so that those of a process before are told apart. */
  readonly #sinceMs: number;
  /** An event stands at its number modulo the length. */
  readonly #ring = Array<Happening | null>(KEPT).fill(null);
  /** Beside it, of those that somebody wanted. */
  readonly #made = Array<StoredEvent | null>(KEPT).fill(null);
  readonly #followers = new Waiting();
  #isGathering = false;
  /** Of the next one. The first has 1. */
  #next = 1;
  /** Of the oldest that is kept. */
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

  publish(happening: Happening): void {
    if (this.#next - this.#oldest === KEPT) this.#forgetOldest();
    this.#ring[this.#next % KEPT] = happening;
    this.#next += 1;
    this.#bodyCharacters += bodyCharacters(happening);
    while (this.#bodyCharacters > MOST_BODY_CHARACTERS) this.#forgetOldest();
    if (this.#isGathering || !this.#followers.isAnybody) return;
    this.#isGathering = true;
    this.#clock.after(GATHER_MS, () => {
      this.#isGathering = false;
      this.#followers.wake();
    });
  }

  async *follow(after: string | null, signal: AbortSignal): AsyncGenerator<readonly PublishedEvent[]> {
    let next = after === null ? this.#next : this.#numberBehind(after);
    while (!signal.aborted) {
      next = Math.max(next, this.#oldest);
      const end = Math.min(this.#next, next + MOST_AT_ONCE);
      const events = [];
      for (; next < end; next++) events.push(...this.#at(next));
      if (events.length > 0) yield events;
      else await this.#followers.next(signal);
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #numberBehind(place: string): number {
    const [sinceMs, number] = placeFrom(place) ?? [NaN, NaN];
    // Of another process's: whatever is kept came after it.
    return sinceMs === this.#sinceMs && number < this.#next ? number + 1 : this.#oldest;
  }

  #at(number: number): StoredEvent[] {
    const slot = number % KEPT;
    const happening = this.#ring[slot];
    if (!happening) return [];
    return [(this.#made[slot] ??= new StoredEvent(`${this.#sinceMs}-${number}`, eventText(happening, this.#instance)))];
  }

  #forgetOldest(): void {
    const slot = this.#oldest % KEPT;
    const happening = this.#ring[slot];
    if (happening) this.#bodyCharacters -= bodyCharacters(happening);
    this.#ring[slot] = this.#made[slot] = null;
    this.#oldest += 1;
  }
}
