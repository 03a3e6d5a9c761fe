/** The event bus that the core publishes to. */
import type { PublishableEvent } from '../events.js';

/** A published event, as a follower receives it. */
export interface PublishedEvent {
  /** Increasing stream ID: two numbers, such as `1735689600000-0`. */
  streamId: string;
  /** On one line. */
  json: string;
  /** The fields that a follower can filter by. */
  readonly facts: EventFacts;
}

export interface EventFacts {
  kind: string;
  projectId: string | null;
  tokenId: string | null;
  /** Null for events that are not requests. */
  status: number | null;
}

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
   * Yields events of all instances that share the bus as they are published, until `signal` is aborted.
   *
   * @param after stream ID of the last event received: continues after it, or with the oldest stored event. Null: only new events.
   */
  follow(after: string | null, signal: AbortSignal): AsyncIterable<readonly PublishedEvent[]>;
  /** Gives buffered events a short time to be sent. */
  close(): Promise<void>;
}
