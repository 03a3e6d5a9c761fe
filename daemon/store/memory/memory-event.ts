/** An event in memory: the record that was published; from the first time that its JSON is read, the JSON instead. */
import type { PublishableEvent } from '../../core/events.js';
import type { EventFacts, PublishedEvent } from '../../core/ports.js';
import { factsOf } from '../event-facts.js';
import { eventText } from '../event-text.js';

/** The bus that stores the event. */
export interface Publisher {
  readonly instance: string;
  /** The first part of its stream IDs. */
  readonly sinceMs: number;
  /** The event with this number, if its JSON was created before. */
  rendered(number: number): MemoryEvent | null;
  /** Called when the JSON of the event was created, which has this many characters: from now on, that is the event with its number. */
  onRendered(event: MemoryEvent, characters: number): void;
}

/** Everything of an event apart from the texts that are counted. */
export const USUAL_CHARACTERS = 900;

export class MemoryEvent implements PublishedEvent {
  readonly #publisher: Publisher;
  readonly number: number;
  #content: PublishableEvent | string;
  #facts: EventFacts | null = null;

  constructor(publisher: Publisher, number: number, published: PublishableEvent) {
    this.#publisher = publisher;
    this.number = number;
    this.#content = published;
  }

  get streamId(): string {
    return `${this.#publisher.sinceMs}-${this.number}`;
  }

  get facts(): EventFacts {
    return (this.#facts ??= factsOf(this.#content));
  }

  get json(): string {
    if (typeof this.#content === 'string') return this.#content;
    // By another reader. Its JSON has the ID of the event.
    const rendered = this.#publisher.rendered(this.number);
    if (rendered && rendered !== this) return (this.#content = rendered.json);
    this.#facts ??= factsOf(this.#content);
    // A copy, because the text was joined from many pieces, which together take three times the memory.
    const json = Buffer.from(eventText(this.#content, this.#publisher.instance)).toString();
    this.#content = json;
    this.#publisher.onRendered(this, json.length);
    return json;
  }
}

/** How much memory an event takes before its JSON was created. */
export function charactersOf(event: PublishableEvent): number {
  if (event.kind !== 'request') return USUAL_CHARACTERS;
  const { path, upstreamRequestId, requestBody, responseBody } = event.ended;
  return (
    USUAL_CHARACTERS +
    path.length +
    (upstreamRequestId?.length ?? 0) +
    (requestBody?.length ?? 0) +
    (responseBody?.length ?? 0)
  );
}
