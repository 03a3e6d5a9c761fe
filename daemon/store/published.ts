import type { EventFacts, PublishedEvent } from '../core/ports.js';
import { factsOf } from './event-facts.js';

/** A published event, as read back from the stream or from memory. */
export class StoredEvent implements PublishedEvent {
  readonly streamId: string;
  readonly json: string;
  #facts: EventFacts | null = null;

  constructor(streamId: string, json: string) {
    this.streamId = streamId;
    this.json = json;
  }

  /** Parsed once, on first use. */
  get facts(): EventFacts {
    return (this.#facts ??= factsOf(this.json));
  }
}
