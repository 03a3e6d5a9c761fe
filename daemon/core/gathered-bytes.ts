import { PIECE_BYTES } from './memory-limit.js';

const FIRST_CAPACITY = 4 * 1024;
const NOTHING = Buffer.alloc(0);

/**
 * Bytes that wait, as one piece however small the pieces were that they arrived in. A single piece is not copied.
 */
export class GatheredBytes {
  #bytes: Buffer | null = null;
  #length = 0;
  /** Whether `#bytes` is a copy of several pieces, with room for more. */
  #isCopy = false;

  get length(): number {
    return this.#length;
  }

  /** Approximate memory, in bytes. */
  get memory(): number {
    return this.#bytes === null ? 0 : this.#bytes.length + PIECE_BYTES;
  }

  add(piece: Buffer): void {
    if (piece.length === 0) return;
    if (this.#bytes === null) {
      this.#bytes = piece;
      this.#length = piece.length;
      return;
    }
    const length = this.#length + piece.length;
    if (!this.#isCopy || length > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(FIRST_CAPACITY, 2 ** Math.ceil(Math.log2(length))));
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
      this.#isCopy = true;
    }
    piece.copy(this.#bytes, this.#length);
    this.#length = length;
  }

  /** @returns all bytes, which are no longer held here; an empty buffer if there are none. */
  take(): Buffer {
    const held = this.#bytes ?? NOTHING;
    const bytes = held.length === this.#length ? held : held.subarray(0, this.#length);
    this.#bytes = null;
    this.#length = 0;
    this.#isCopy = false;
    return bytes;
  }
}
