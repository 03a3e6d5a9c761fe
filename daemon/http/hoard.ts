/** Something that holds memory on behalf of a client. A hostile client makes it hold as much as it can. */
export interface Holder {
  /** Since when, by the monotonic clock. */
  sinceMs: number;
  /** About how much, in whole bytes. Set by the hoard. */
  bytes: number;
  /** Ends it, as a rule together with its connection. The hoard has let go of it by then. */
  drop(): void;
}

// Room is made down to this part of the limit, so that not every further byte has to make room again.
const ENOUGH = 0.9;

/**
 * Holders of memory, the oldest first. When all together hold more than `mostBytes`, those are dropped that hold at least the average, the
 * oldest of them first. A client that means well holds little, or not for long; one that holds much for long is hostile or broken.
 */
export class Hoard<T extends Holder> {
  readonly #mostBytes: number;
  readonly #onDropped: () => void;
  readonly #holders = new Set<T>();
  #bytes = 0;

  constructor(mostBytes: number, onDropped: () => void) {
    this.#mostBytes = mostBytes;
    this.#onDropped = onDropped;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** From now on the holder holds so much in all. */
  hold(holder: T, bytes: number): void {
    // A sum of fractions would drift, and could become more than all the holders have: then there would be nobody to drop, for ever.
    const whole = Math.ceil(bytes);
    this.#bytes += whole - holder.bytes;
    holder.bytes = whole;
    this.#holders.add(holder);
    // A single holder, such as a large response to a slow client, may exceed the limit: it keeps nobody else out.
    while (this.#bytes > this.#mostBytes && this.#holders.size > 1) this.#makeRoom();
  }

  letGo(holder: T): void {
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
      if (this.#bytes <= ENOUGH * this.#mostBytes) return;
      if (holder.bytes >= share) this.#drop(holder);
    }
  }

  #drop(holder: T): void {
    this.letGo(holder);
    this.#onDropped();
    holder.drop();
  }
}
