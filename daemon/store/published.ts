import type { EventFacts, PublishedEvent } from '../core/ports.js';
import type { EventJson } from './event-json.js';

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

const UNKNOWN_FACTS: EventFacts = { kind: '', projectId: null, tokenId: null, status: null };

function factsOf(json: string): EventFacts {
  try {
    const event = JSON.parse(json) as Partial<EventJson> | null;
    const { kind = '', project_id: projectId = null, token_id: tokenId = null } = event ?? {};
    return { kind, projectId, tokenId, status: event && 'status' in event ? (event.status ?? null) : null };
  } catch {
    return UNKNOWN_FACTS; // Another program wrote this entry.
  }
}

/** Set of callers that wait for a signal. */
export class Waiters {
  readonly #resumes = new Set<() => void>();

  wake(): void {
    if (this.#resumes.size === 0) return;
    const all = [...this.#resumes];
    this.#resumes.clear();
    for (const resume of all) resume();
  }

  get hasAny(): boolean {
    return this.#resumes.size > 0;
  }

  /** Resolves at the next `wake` or when `signal` is aborted. */
  next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#resumes.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#resumes.add(done);
      signal.addEventListener('abort', done);
      if (signal.aborted) done();
    });
  }
}
