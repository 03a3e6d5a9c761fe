import type { StoredResponse } from './ports.js';

// In addition to one response of the maximum size.
const MAX_BYTES = 64 * 1024 * 1024;
// Smaller bodies fit into the kernel's socket buffers even if their clients do not read.
const COUNTED_FROM_BYTES = 64 * 1024;

/**
 * Memory budget for responses in transit: those being captured for the cache, and cached responses being sent to clients. An
 * unfinished response may never be stored and a slow client may never read its response, so both are bounded here, apart from the
 * cache itself.
 */
export class InTransitBudget {
  /** Bytes of all responses in transit, in both directions. */
  bytes = 0;
  /** Cached responses being sent, with the number of clients receiving each: a shared body is counted once. */
  readonly #sending = new Map<StoredResponse, number>();

  /** @param maxBytes maximum size of one response. */
  hasCapacity(maxBytes: number): boolean {
    return this.bytes <= MAX_BYTES + maxBytes;
  }

  beginSending(response: StoredResponse): void {
    const { length } = response.body;
    if (length < COUNTED_FROM_BYTES) return;
    const clients = this.#sending.get(response) ?? 0;
    if (clients === 0) this.bytes += length;
    this.#sending.set(response, clients + 1);
  }

  /** Call once for each `beginSending` of the same response. */
  endSending(response: StoredResponse): void {
    const clients = this.#sending.get(response);
    if (clients === undefined) return;
    if (clients > 1) {
      this.#sending.set(response, clients - 1);
      return;
    }
    this.#sending.delete(response);
    this.bytes -= response.body.length;
  }
}
