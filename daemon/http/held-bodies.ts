/**
 * The request bodies that are held in memory before anything is spent on them: small ones until they are whole, and those that the
 * cache is asked by. Nothing is known yet of whether they will ever be whole, so a bound over all connections limits them.
 */

/** Of all requests together. A body that finds no room is forwarded piece by piece, without a look into the cache. */
const MOST_BYTES = 32 * 1024 * 1024;

export class HeldBodies {
  /** Of all bodies that are held now. */
  bytes = 0;

  open(): HeldBody {
    return new HeldBody(this);
  }
}

/** What one request holds. */
export class HeldBody {
  #bytes = 0;
  #isReleased = false;

  constructor(private readonly all: HeldBodies) {}

  /** Counts memory before it is used. @returns false when there is no room for it, and it is not counted. */
  takes(bytes: number): boolean {
    if (this.#isReleased || this.all.bytes + bytes > MOST_BYTES) return false;
    this.#bytes += bytes;
    this.all.bytes += bytes;
    return true;
  }

  /** The body was forwarded, or its request is over. */
  release(): void {
    this.#isReleased = true;
    this.all.bytes -= this.#bytes;
    this.#bytes = 0;
  }
}
