/** The event bus that the core publishes to. */
import type { PublishableEvent } from '../events.js';

/** A published event, as a follower receives it. */
export interface PublishedEvent {
  /** Increasing stream ID: two numbers, such as `1735689600000-0`. */
  readonly streamId: string;
  /** On one line. */
  readonly json: string;
  /** The fields that a follower can filter by. */
  readonly facts: EventFacts;
}

export interface EventFacts {
  kind: string;
  /** When it occurred, in ms since the epoch. */
  timeMs: number;
  projectId: string | null;
  tokenId: string | null;
  // Null for events that are not requests.
  status: number | null;
  code: string | null;
  outcome: string | null;
  model: string | null;
  durationMs: number | null;
}

/**
 * Where a follower begins: after the event with a stream ID (with the oldest stored event if that one is unknown), or with the events
 * since a time. Null: only new events.
 */
export type FollowStart = { after: string } | { sinceMs: number } | null;

/** Counted since this instance started, unless noted. */
export interface EventCounts {
  /** Accepted by the bus. */
  published: number;
  /** Lost on this instance: the buffer was full, or shutdown timed out. */
  dropped: number;
  /** Failed attempts to send a batch. */
  failed: number;
  /** Currently waiting to be sent. */
  buffered: number;
  /** Published by all instances and not yet read by a dispatcher; null if there is no dispatcher or the number is unknown. */
  lag: number | null;
  /** Trimmed from the stream before a dispatcher read them, as observed by this instance. */
  trimmedUnread: number;
}

export interface EventBus {
  readonly backend: 'memory' | 'redis';
  /** Whether events can be published now. */
  readonly isFailing: boolean;
  readonly counts: EventCounts;
  /** Does not wait and does not throw. */
  publish(event: PublishableEvent): void;
  /**
   * Yields events of all instances that share the bus as they are published, until `signal` is aborted. Stored events come first, and
   * new ones follow without a gap or a duplicate. With `sinceMs`, some earlier events may come too: the caller filters by time.
   */
  follow(start: FollowStart, signal: AbortSignal): AsyncIterable<readonly PublishedEvent[]>;
  /**
   * Yields the stored events, newest first, in batches of limited size.
   *
   * @param before stream ID: only events before it. Null: all.
   * @param sinceMs earlier events are not needed, but may come.
   * @throws {StoreUnavailable}
   */
  stored(before: string | null, sinceMs: number): AsyncIterable<readonly PublishedEvent[]>;
  /** Gives buffered events a short time to be sent. */
  close(): Promise<void>;
}
