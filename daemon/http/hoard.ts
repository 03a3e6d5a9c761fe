/** Something that holds memory for a client, which may do so on purpose. */
export interface Holder {
  /** Since when, by the monotonic clock. */
  sinceMs: number;
  /** About how much. Set by the hoard. */
  bytes: number;
  /** Ends it, as a rule with its connection. It lets go by itself then. */
  drop(): void;
}

// So that room is not made for each byte.
const ENOUGH = 0.9;

/**
 * Those who hold memory, the oldest first. Beyond `mostBytes` for all together the oldest are dropped that hold at least their share:
 * whoever holds much for long is hostile or broken, and a client that means well holds little, or not for long.
 */
export class Hoard<T extends Holder> {
  readonly #holders = new Set<T>();
  #bytes = 0;
  /** How many were dropped so far. */
  dropped = 0;

  constructor(
    private readonly mostBytes: number,
    private readonly onDropped: () => void,
  ) {}

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#holders.size;
  }

  /** From now on the holder has so much. */
  hold(holder: T, bytes: number): void {
    this.#bytes += bytes - holder.bytes;
    holder.bytes = bytes;
    this.#holders.add(holder);
    // One alone, such as a large answer to a slow client, keeps nobody out.
    while (this.#bytes > this.mostBytes && this.#holders.size > 1) this.#makeRoom();
  }

  letGo(holder: T): void {
    if (!this.#holders.delete(holder)) return;
    this.#bytes -= holder.bytes;
    holder.bytes = 0;
  }

  /** Drops those that it is true of. */
  dropWhere(isUnwanted: (holder: T) => boolean): void {
    for (const holder of this.#holders) if (isUnwanted(holder)) this.#drop(holder);
  }

  #makeRoom(): void {
    const share = this.#bytes / this.#holders.size;
    for (const holder of this.#holders) {
      if (this.#bytes <= ENOUGH * this.mostBytes) return;
      if (holder.bytes >= share) this.#drop(holder);
    }
  }

  #drop(holder: T): void {
    this.letGo(holder);
    this.dropped += 1;
    this.onDropped();
    holder.drop();
  }
}
