import type { StoredResponse } from '../ports.js';

// In addition to one response of the maximum size.
const MAX_BYTES = 64 * 1024 * 1024;
// Smaller bodies fit into the kernel's socket buffers even if their clients do not read.
const COUNTED_FROM_BYTES = 64 * 1024;

/**
 * Stored responses that are being sent. Usually they are in the cache, which has its own limit; but it may replace one while a slow client
 * still reads it. So when there are many, no more are begun. Those who read them are not cut off for it.
 */
export class Replays {
  #bytes = 0;
  /** The number of clients that receive each: a shared body is counted once. */
  readonly #clients = new Map<StoredResponse, number>();

  /** @param maxBytes maximum size of one response. */
  hasRoom(maxBytes: number): boolean {
    return this.#bytes <= MAX_BYTES + maxBytes;
  }

  begin(response: StoredResponse): void {
    const { length } = response.body;
    if (length < COUNTED_FROM_BYTES) return;
    const clients = this.#clients.get(response) ?? 0;
    if (clients === 0) this.#bytes += length;
    this.#clients.set(response, clients + 1);
  }

  /** Call once for each `begin` of the same response. */
  end(response: StoredResponse): void {
    const clients = this.#clients.get(response);
    if (clients === undefined) return;
    if (clients > 1) {
      this.#clients.set(response, clients - 1);
      return;
    }
    this.#clients.delete(response);
    this.#bytes -= response.body.length;
  }
}
