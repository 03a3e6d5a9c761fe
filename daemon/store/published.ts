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
