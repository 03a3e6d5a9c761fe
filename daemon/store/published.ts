import type { EventFacts, PublishedEvent } from '../core/ports.js';
import type { EventJson } from './event-json.js';

/** An event that is read again. */
export class StoredEvent implements PublishedEvent {
  readonly place: string;
  readonly json: string;
  #facts: EventFacts | null = null;

  constructor(place: string, json: string) {
    this.place = place;
    this.json = json;
  }

  /** Looked for once, however many ask. */
  get facts(): EventFacts {
    return (this.#facts ??= factsOf(this.json));
  }
}

const OF_NOTHING: EventFacts = { kind: '', projectId: null, tokenId: null, status: null };

function factsOf(json: string): EventFacts {
  try {
    const event = JSON.parse(json) as Partial<EventJson> | null;
    const { kind = '', project_id: projectId = null, token_id: tokenId = null } = event ?? {};
    return { kind, projectId, tokenId, status: event && 'status' in event ? (event.status ?? null) : null };
  } catch {
    return OF_NOTHING; // Somebody else put it there.
  }
}

/** Those who wait for something to happen. */
export class Waiting {
  readonly #waiting = new Set<() => void>();

  wake(): void {
    if (this.#waiting.size === 0) return;
    const all = [...this.#waiting];
    this.#waiting.clear();
    for (const resume of all) resume();
  }

  get isAnybody(): boolean {
    return this.#waiting.size > 0;
  }

  /** Resolves at the next `wake`, or when `signal` is aborted. */
  next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#waiting.add(done);
      signal.addEventListener('abort', done);
      if (signal.aborted) done();
    });
  }
}
