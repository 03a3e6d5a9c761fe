const EMPTY = Buffer.alloc(0);
const FIRST_BYTES = 1024;

/** Buffer for the beginning of a body of any length. It holds copies, so no chunk keeps its underlying buffer in memory. */
export class BoundedBytes {
  readonly #maxBytes: number;
  #held: Buffer = EMPTY;
  #heldBytes = 0;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Number of bytes added, held or not. */
  get bytes(): number {
    return this.#bytes;
  }

  get isWhole(): boolean {
    return this.#bytes === this.#heldBytes;
  }

  get head(): Buffer {
    return this.#held.subarray(0, this.#heldBytes);
  }

  add(chunk: Buffer): void {
    this.#bytes += chunk.length;
    const taken = Math.min(chunk.length, this.#maxBytes - this.#heldBytes);
    if (taken <= 0) return;
    const needed = this.#heldBytes + taken;
    if (needed > this.#held.length) {
      const grown = Buffer.allocUnsafeSlow(Math.min(this.#maxBytes, Math.max(FIRST_BYTES, 2 * needed)));
      this.#held.copy(grown, 0, 0, this.#heldBytes);
      this.#held = grown;
    }
    chunk.copy(this.#held, this.#heldBytes, 0, taken);
    this.#heldBytes = needed;
  }

  clear(): void {
    this.#bytes = this.#heldBytes = 0;
    // Frees a large buffer, so that it is not held until the end of a long stream.
    if (this.#held.length > 16 * FIRST_BYTES) this.#held = EMPTY;
  }
}
