import { PIECE_BYTES } from './memory-limit.js';

// Smaller pieces are copied together; copying larger ones would cost more than it saves.
const SMALL_BYTES = 4 * 1024;
const MAX_BLOCK_BYTES = 64 * 1024;
const NOTHING = Buffer.alloc(0);

/** Bytes that wait, taken as one piece. However small the pieces are that they arrive in, they take little more memory than their bytes. */
export class GatheredBytes {
  /** A single piece is not copied. */
  #first: Buffer = NOTHING;
  /** Null while there is only one piece, as nearly always. */
  #more: Pieces | null = null;

  get length(): number {
    return this.#first.length + (this.#more?.length ?? 0);
  }

  /** Approximate memory, in bytes. */
  get memory(): number {
    return this.#first.length === 0 ? 0 : this.#first.length + PIECE_BYTES + (this.#more?.memory ?? 0);
  }

  add(piece: Buffer): void {
    if (this.#first.length === 0) this.#first = piece;
    else if (piece.length > 0) (this.#more ??= new Pieces()).add(piece);
  }

  /** @returns all bytes, which are no longer held here; an empty buffer if there are none. */
  take(): Buffer {
    const bytes = this.#more === null ? this.#first : this.#more.appendedTo(this.#first);
    this.#first = NOTHING;
    this.#more = null;
    return bytes;
  }
}

/** The pieces after the first one. */
class Pieces {
  readonly #parts: Buffer[] = [];
  /** Small pieces, in the order in which they arrived. Null if the last piece was large. */
  #block: Buffer | null = null;
  #blockBytes = 0;
  length = 0;
  memory = 0;

  add(piece: Buffer): void {
    this.length += piece.length;
    if (piece.length < SMALL_BYTES) {
      this.#copy(piece);
    } else {
      this.#endBlock();
      this.#parts.push(piece);
      this.memory += piece.length + PIECE_BYTES;
    }
  }

  #copy(piece: Buffer): void {
    const capacity = this.#block?.length ?? 0;
    if (this.#block === null || this.#blockBytes + piece.length > capacity) {
      this.#endBlock();
      this.#block = Buffer.allocUnsafeSlow(Math.min(MAX_BLOCK_BYTES, Math.max(SMALL_BYTES, 2 * capacity)));
      this.memory += this.#block.length + PIECE_BYTES;
    }
    this.#blockBytes += piece.copy(this.#block, this.#blockBytes);
  }

  #endBlock(): void {
    if (this.#block !== null) this.#parts.push(this.#block.subarray(0, this.#blockBytes));
    this.#block = null;
    this.#blockBytes = 0;
  }

  appendedTo(first: Buffer): Buffer {
    this.#endBlock();
    return Buffer.concat([first, ...this.#parts], first.length + this.length);
  }
}
