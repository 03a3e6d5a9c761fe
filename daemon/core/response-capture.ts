import type { StoragePolicy } from './cache/caching.js';
import { GatheredBytes } from './gathered-bytes.js';
import type { HeldMemory } from './memory-limit.js';
import type { StoredResponse } from './ports.js';

/** Copy of an upstream response that may be stored once it is complete. */
export class ResponseCapture {
  readonly #memory: HeldMemory;
  readonly #head: Pick<StoredResponse, 'status' | 'headers'>;
  readonly policy: StoragePolicy;
  readonly #body = new GatheredBytes();

  /** @param memory its bytes count here. */
  constructor(memory: HeldMemory, head: Pick<StoredResponse, 'status' | 'headers'>, policy: StoragePolicy) {
    this.#memory = memory;
    this.#head = head;
    this.policy = policy;
  }

  /** @returns false when the response exceeds its maximum size, or memory is short. */
  add(chunk: Buffer, maxBytes: number): boolean {
    this.#body.add(chunk);
    return this.#body.length <= maxBytes && this.#memory.hold(this.#body.memory);
  }

  storedResponse(): StoredResponse {
    const { ageMs, isForOptedIn } = this.policy;
    const gathered = this.#body.take();
    // A copy of the exact size: what was gathered may be a slice of a larger buffer.
    const body = Buffer.allocUnsafeSlow(gathered.length);
    gathered.copy(body);
    return { kind: 'answer', ...this.#head, body, ageMs, isForOptedIn };
  }

  /** Frees its memory. Nothing is added afterwards. */
  release(): void {
    this.#memory.release();
  }
}
