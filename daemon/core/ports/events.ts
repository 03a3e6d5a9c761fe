/** What events are handed to. */
import type { Happening } from '../events.js';

/** An event as whoever follows them gets it. */
export interface PublishedEvent {
  /** Its place: two numbers, such as `1735689600000-0`, that rise. */
  place: string;
  /** In one line. */
  json: string;
  /** What it can be chosen by. */
  readonly facts: EventFacts;
}

export interface EventFacts {
  kind: string;
  projectId: string | null;
  tokenId: string | null;
  /** Null for what is no request. */
  status: number | null;
}

/** Since this instance started, unless stated. */
export interface EventCounts {
  /** Taken by the bus. */
  published: number;
  /** Lost here: there was no room, or no time at the end. */
  dropped: number;
  /** Tries to send a batch that did not succeed. */
  failed: number;
  /** Waiting now. */
  buffered: number;
  /** Published by all instances and not yet read by a dispatcher; null where nobody reads, or that is not known. */
  lag: number | null;
  /** Removed from the stream before a dispatcher had read them, as far as this instance saw. */
  trimmedUnread: number;
}

export interface EventBus {
  readonly backend: 'memory' | 'redis';
  /** Whether events can be published now. */
  readonly isFailing: boolean;
  readonly counts: EventCounts;
  /** Never waits, never throws. */
  publish(happening: Happening): void;
  /**
   * Events as they come, of all instances that share the bus, until `signal` is aborted.
   *
   * @param after the place of the last one that is known: begins behind it, or with the oldest that is kept. Null: with the next.
   */
  follow(after: string | null, signal: AbortSignal): AsyncIterable<readonly PublishedEvent[]>;
  /** Gives what waits a moment to go out. */
  close(): Promise<void>;
}
