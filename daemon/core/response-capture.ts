import type { StoragePolicy } from './cache/caching.js';
import type { StoredResponse } from './ports.js';
import type { InTransitBudget } from './in-transit-budget.js';

/** Buffer of an upstream response that may be stored once it is complete. Its bytes count against the in-transit budget. */
export class ResponseCapture {
  readonly #budget: InTransitBudget;
  readonly #head: Pick<StoredResponse, 'status' | 'headers'>;
  readonly policy: StoragePolicy;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(room: InTransitBudget, head: Pick<StoredResponse, 'status' | 'headers'>, keeping: StoragePolicy) {
    this.#budget = room;
    this.#head = head;
    this.policy = keeping;
  }

  /** @returns false when the response exceeds its maximum size or the budget is used up. */
  add(chunk: Buffer, maxBytes: number): boolean {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    this.#budget.bytes += chunk.length;
    return this.#bytes <= maxBytes && this.#budget.hasCapacity(maxBytes);
  }

  storedResponse(): StoredResponse {
    const { ageMs, isForOptedIn } = this.policy;
    // A copy: each chunk is a slice of a larger buffer, which would stay in memory as long as the chunk.
    const body = Buffer.allocUnsafeSlow(this.#bytes);
    let at = 0;
    for (const chunk of this.#chunks) at += chunk.copy(body, at);
    return { kind: 'answer', ...this.#head, body, ageMs, isForOptedIn };
  }

  /** Returns its bytes to the budget. Call once. */
  release(): void {
    this.#budget.bytes -= this.#bytes;
  }
}
