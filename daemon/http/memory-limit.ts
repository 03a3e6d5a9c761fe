/** A holder of memory on behalf of a client. A hostile client makes it hold as much as it can. */
export interface MemoryHolder {
  /** Since when it holds memory, in monotonic time. */
  sinceMs: number;
  /** Approximate memory in whole bytes. Set by `MemoryLimit`. */
  bytes: number;
  /** Ends the holder, usually by closing its connection. `MemoryLimit` has already released it. */
  drop(): void;
}

// Memory is freed down to this part of the limit, so that not every further byte has to free memory again.
const TARGET_SHARE = 0.9;

/**
 * Memory limit for all clients together. When the holders exceed `maxBytes`, those with at least the average size are dropped, the oldest
 * of them first. A well-behaved client holds little memory or holds it briefly; one that holds much for long is hostile or broken.
 */
export class MemoryLimit<T extends MemoryHolder> {
  readonly #maxBytes: number;
  readonly #onDropped: () => void;
  readonly #holders = new Set<T>();
  #bytes = 0;

  constructor(maxBytes: number, onDropped: () => void) {
    this.#maxBytes = maxBytes;
    this.#onDropped = onDropped;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Sets the total that the holder now holds. */
  hold(holder: T, bytes: number): void {
    // A sum of fractions would drift and could exceed what the holders have; then no holder could be dropped to get below the limit.
    const whole = Math.ceil(bytes);
    this.#bytes += whole - holder.bytes;
    holder.bytes = whole;
    this.#holders.add(holder);
    // A single holder, such as a large response to a slow client, may exceed the limit: it blocks no other.
    while (this.#bytes > this.#maxBytes && this.#holders.size > 1) this.#makeRoom();
  }

  release(holder: T): void {
    if (!this.#holders.delete(holder)) return;
    this.#bytes -= holder.bytes;
    holder.bytes = 0;
  }

  /** Drops all holders for which `isUnwanted` is true. */
  dropWhere(isUnwanted: (holder: T) => boolean): void {
    for (const holder of this.#holders) if (isUnwanted(holder)) this.#drop(holder);
  }

  #makeRoom(): void {
    const share = this.#bytes / this.#holders.size;
    for (const holder of this.#holders) {
      if (this.#bytes <= TARGET_SHARE * this.#maxBytes) return;
      if (holder.bytes >= share) this.#drop(holder);
    }
  }

  #drop(holder: T): void {
    this.release(holder);
    this.#onDropped();
    holder.drop();
  }
}
