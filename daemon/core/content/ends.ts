const EMPTY = Buffer.alloc(0);
/** At least what stands behind the token counts of an answer: its metadata, mostly. */
const TAIL_BYTES = 32 * 1024;
const FIRST_BYTES = 1024;

/**
 * The two ends of what comes in pieces, however long it is: up to so many bytes of its beginning, and if it is longer at
 * least the last 32 KiB. Holds twice that and the beginning at most.
 */
export class Ends {
  readonly #mostHeadBytes: number;
  readonly #isShortLived: boolean;
  /** A copy, unless all there is came in one piece. */
  #head: Buffer = EMPTY;
  #headBytes = 0;
  #isOwn = false;
  #tail: Buffer | null = null;
  #tailBytes = 0;
  #bytes = 0;

  /** @param isShortLived whether a piece may be kept as it is, with all of the buffer that it is a part of. */
  constructor(mostHeadBytes: number, isShortLived: boolean) {
    this.#mostHeadBytes = mostHeadBytes;
    this.#isShortLived = isShortLived;
  }

  /** How much there was in all. */
  get bytes(): number {
    return this.#bytes;
  }

  get isWhole(): boolean {
    return this.#tail === null;
  }

  get head(): Buffer {
    return this.#headBytes === this.#head.length ? this.#head : this.#head.subarray(0, this.#headBytes);
  }

  /** What follows the head, or the end of that. */
  get tail(): Buffer {
    return this.#tail?.subarray(0, this.#tailBytes) ?? EMPTY;
  }

  add(piece: Buffer): void {
    if (this.#bytes === 0 && this.#isShortLived && piece.length <= this.#mostHeadBytes) {
      this.#head = piece;
      this.#headBytes = this.#bytes = piece.length;
      return;
    }
    this.#bytes += piece.length;
    const room = this.#mostHeadBytes - this.#headBytes;
    if (room > 0) this.#addToHead(piece.length <= room ? piece : piece.subarray(0, room));
    if (piece.length > room) this.#addToTail(room > 0 ? piece.subarray(room) : piece);
  }

  clear(): void {
    this.#bytes = this.#headBytes = this.#tailBytes = 0;
    this.#tail = null;
    // What was large once need not be held until the end of a long stream.
    if (!this.#isOwn || this.#head.length > 16 * FIRST_BYTES) {
      this.#head = EMPTY;
      this.#isOwn = false;
    }
  }

  #addToHead(piece: Buffer): void {
    const needed = this.#headBytes + piece.length;
    if (!this.#isOwn || needed > this.#head.length) {
      const grown = Buffer.allocUnsafeSlow(Math.min(this.#mostHeadBytes, Math.max(FIRST_BYTES, 2 * needed)));
      this.#head.copy(grown, 0, 0, this.#headBytes);
      this.#head = grown;
      this.#isOwn = true;
    }
    piece.copy(this.#head, this.#headBytes);
    this.#headBytes = needed;
  }

  #addToTail(piece: Buffer): void {
    const tail = (this.#tail ??= Buffer.allocUnsafeSlow(2 * TAIL_BYTES));
    const kept = piece.length > tail.length ? piece.subarray(piece.length - tail.length) : piece;
    if (this.#tailBytes + kept.length > tail.length) {
      // Makes room for half of it at once, so that bytes that come one by one are not moved for each.
      const stays = Math.min(this.#tailBytes, Math.max(TAIL_BYTES, 0), tail.length - kept.length);
      tail.copyWithin(0, this.#tailBytes - stays, this.#tailBytes);
      this.#tailBytes = stays;
    }
    kept.copy(tail, this.#tailBytes);
    this.#tailBytes += kept.length;
  }
}
