/**
 * Event bus in memory, for an instance without Redis. It stores the last 10,000 events for followers and lists.
 *
 * All events together have at most 16 MB, so that long paths and captured bodies store fewer events instead of taking more memory.
 * Usually they take about 9 MB.
 */
import { parseStreamId, type PublishableEvent } from '../../core/events.js';
import type { Clock, EventBus, EventCounts, FollowStart, PublishedEvent } from '../../core/ports.js';
import { eventText } from '../event-text.js';
import { RecentEvents } from '../recent-events.js';

const MAX_EVENTS = 10_000;
const MAX_BYTES = 16_000_000;
const GATHER_MS = 20; // Each wake-up costs one write per follower.

export class MemoryEventBus implements EventBus {
  readonly backend = 'memory';
  readonly isFailing = false;
  readonly #instance: string;
  readonly #clock: Clock;
  /** The first part of all stream IDs, so that positions from an earlier process are recognised. */
  readonly #sinceMs: number;
  readonly #recent: RecentEvents;
  /** The second part of stream IDs is the number of the event. */
  #published = 0;
  #isGathering = false;

  constructor(instance: string, clock: Clock) {
    this.#instance = instance;
    this.#clock = clock;
    this.#sinceMs = clock.now();
    this.#recent = new RecentEvents({ clock, maxEvents: MAX_EVENTS, maxBytes: MAX_BYTES });
    this.#recent.beginAt(`${this.#sinceMs}-0`);
  }

  get counts(): EventCounts {
    return { published: this.#published, dropped: 0, failed: 0, buffered: 0, lag: null, trimmedUnread: 0 };
  }

  publish(event: PublishableEvent): void {
    this.#published += 1;
    this.#recent.append(`${this.#sinceMs}-${this.#published}`, eventText(event, this.#instance));
    if (this.#isGathering || !this.#recent.isAwaited) return;
    this.#isGathering = true;
    this.#clock.after(GATHER_MS, () => {
      this.#isGathering = false;
      this.#recent.wake();
    });
  }

  follow(start: FollowStart, signal: AbortSignal): AsyncGenerator<readonly PublishedEvent[]> {
    return this.#recent.follow(this.#positionOf(start), signal, () => Promise.resolve([]));
  }

  async *stored(before: string | null): AsyncGenerator<readonly PublishedEvent[]> {
    let position = before;
    while (position === null || this.#isOwn(position)) {
      const events = this.#recent.before(position);
      const oldest = events.at(-1);
      if (!oldest) return;
      yield events;
      position = oldest.streamId;
      // A reader that searches all of them must not delay requests.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #positionOf(start: FollowStart): string | null {
    if (start === null) return null;
    // All events, or a position from another process: then all stored events are newer.
    return 'after' in start && this.#isOwn(start.after) ? start.after : '0-0';
  }

  /** Whether an event of this process has or had this stream ID. */
  #isOwn(streamId: string): boolean {
    const [sinceMs, number] = parseStreamId(streamId) ?? [NaN, NaN];
    return sinceMs === this.#sinceMs && number <= this.#published;
  }
}
