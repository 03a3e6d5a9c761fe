/**
 * The one limit for memory that a process holds between clients and providers: input that is not served yet, bodies and responses that
 * the other side does not take, copies for the cache. Pieces count as objects, not only as bytes, since a hostile peer sends one byte at
 * a time. When memory is short, those who hold the most lose it.
 */
import { LinkedSet, LinkedSetMember } from './linked-set.js';

/** Memory of a piece in addition to its bytes: a buffer, its backing store, and its entry in a queue. */
export const PIECE_BYTES = 200;

export interface MemoryLimitOptions {
  /** Whether the heap has no room for another request. Cheap to ask. */
  heap: { readonly isFull: boolean };
  /** Called for each holder that is ended. */
  onDropped: (() => void) | null;
  /** Limit for all holders together. Read whenever it could be exceeded. */
  maxBytes: () => number;
}

// Memory is freed down to this part, so that not every further byte has to free memory again.
const TARGET_SHARE = 0.9;
/** The part that holders keep while the heap is full. */
const SHARE_OF_FULL_HEAP = 0.5;
// Below this, holders cannot be the reason for a full heap.
const MIN_BYTES = 1024 * 1024;

export class MemoryLimit {
  readonly #options: MemoryLimitOptions;
  /** The oldest first. */
  readonly #holders = new LinkedSet<HeldMemory>();
  #bytes = 0;
  /** What holders may keep while the heap is full; null while it is not. */
  #targetOfFullHeap: number | null = null;
  /** Number of holders that were ended because memory was short. */
  dropped = 0;

  constructor(options: MemoryLimitOptions) {
    this.#options = options;
  }

  /** What all holders hold now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Called by holders. @returns whether the holder still holds its memory afterwards. */
  hold(holder: HeldMemory, bytes: number): boolean {
    const isGrowing = bytes > holder.bytes;
    if (holder.bytes === 0 && bytes > 0) this.#holders.add(holder);
    else if (bytes === 0) this.#holders.delete(holder);
    this.#bytes += bytes - holder.bytes;
    holder.bytes = bytes;
    if (!isGrowing) return true;
    // A single holder, such as a large response to a slow client, may exceed the limit: it blocks no other.
    const maxBytes = this.#options.maxBytes();
    if (this.#bytes > maxBytes) this.#makeRoom(TARGET_SHARE * maxBytes);
    else if (this.#bytes > MIN_BYTES && this.#options.heap.isFull) this.#freeHeap();
    else this.#targetOfFullHeap = null;
    return holder.bytes > 0;
  }

  /** Once for each time that the heap is full: it stays full until garbage is collected. */
  #freeHeap(): void {
    this.#targetOfFullHeap ??= Math.max(MIN_BYTES, SHARE_OF_FULL_HEAP * this.#bytes);
    if (this.#bytes > this.#targetOfFullHeap) this.#makeRoom(this.#targetOfFullHeap);
  }

  /** Drops those that hold at least the average, the oldest of them first, after all clients that have shown no token yet. */
  #makeRoom(targetBytes: number): void {
    for (const holder of this.#holders.all()) {
      if (this.#bytes <= targetBytes) return;
      if (holder.isUnknown) this.#drop(holder);
    }
    while (this.#bytes > targetBytes && this.#holders.size > 1) {
      const share = this.#bytes / this.#holders.size;
      for (const holder of this.#holders.all()) {
        if (this.#bytes <= targetBytes) return;
        if (holder.bytes >= share) this.#drop(holder);
      }
    }
  }

  #drop(holder: HeldMemory): void {
    holder.release();
    this.dropped += 1;
    this.#options.onDropped?.();
    holder.drop();
  }
}

/** Memory that is held for one client or response. Counts nothing until it holds something. */
export class HeldMemory extends LinkedSetMember {
  readonly #limit: MemoryLimit;
  /** In whole bytes: a sum of fractions would drift. */
  bytes = 0;
  /** Whether it is held for a client that has shown no token yet. There may be any number of them, each with little. */
  isUnknown = false;
  /** Ends the holder, such as a connection. Its memory is released already. */
  readonly drop: () => void;

  constructor(limit: MemoryLimit, drop: () => void) {
    super();
    this.#limit = limit;
    this.drop = drop;
  }

  /**
   * Sets the total that is held now.
   *
   * @returns false if memory was short and this holder was dropped for it; `drop` was called.
   */
  hold(bytes: number): boolean {
    return bytes === this.bytes || this.#limit.hold(this, Math.ceil(bytes));
  }

  release(): void {
    this.hold(0);
  }
}
