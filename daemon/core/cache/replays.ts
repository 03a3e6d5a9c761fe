import { HeldMemory, type MemoryLimit } from '../memory-limit.js';
import type { StoredResponse } from '../ports.js';

// Smaller bodies fit into the kernel's socket buffers even if their clients do not read.
const COUNTED_FROM_BYTES = 64 * 1024;

interface Replay {
  memory: HeldMemory;
  /** Ends the response to each client. */
  clients: Set<() => void>;
}

/**
 * Stored responses that are being sent. The cache may replace one while a slow client still reads it, so its memory counts here too, once
 * for all clients that receive it. If it is dropped, they are cut off.
 */
export class Replays {
  readonly #limit: MemoryLimit;
  readonly #replays = new Map<StoredResponse, Replay>();

  constructor(limit: MemoryLimit) {
    this.#limit = limit;
  }

  /**
   * @param cut ends the response to the client. @returns a function to call when the response has ended; null if the response is too small
   *   to count.
   */
  begin(response: StoredResponse, cut: () => void): (() => void) | null {
    const { length } = response.body;
    if (length < COUNTED_FROM_BYTES) return null;
    let replay = this.#replays.get(response);
    if (!replay) {
      const clients = new Set<() => void>();
      const memory = new HeldMemory(this.#limit, () => {
        for (const each of [...clients]) each();
      });
      replay = { memory, clients };
      this.#replays.set(response, replay);
    }
    const { memory, clients } = replay;
    clients.add(cut);
    memory.hold(length);
    return () => {
      if (!clients.delete(cut) || clients.size > 0) return;
      memory.release();
      this.#replays.delete(response);
    };
  }
}
