const EMPTY = Buffer.alloc(0);
/** Enough for what follows the token counts in a response: mostly its metadata. */
const TAIL_BYTES = 32 * 1024;
const FIRST_BYTES = 1024;

/**
 * Buffer for the beginning and the end of a body of any length: up to `maxHeadBytes` from its beginning, and if it is longer, at
 * least its last 32 KiB. Memory is bounded by the head plus 64 KiB.
 */
export class HeadAndTail {
  readonly #maxHeadBytes: number;
  readonly #isShortLived: boolean;
  /** A copy, unless the whole body arrived in one chunk. */
  #head: Buffer = EMPTY;
  #headBytes = 0;
  #isOwn = false;
  #tail: Buffer | null = null;
  #tailBytes = 0;
  #bytes = 0;

  /** @param isShortLived whether a chunk may be referenced instead of copied, which keeps its whole underlying buffer in memory. */
  constructor(maxHeadBytes: number, isShortLived: boolean) {
    this.#maxHeadBytes = maxHeadBytes;
    this.#isShortLived = isShortLived;
  }

  /** Total number of bytes added. */
  get bytes(): number {
    return this.#bytes;
  }

  get isWhole(): boolean {
    return this.#tail === null;
  }

  get head(): Buffer {
    return this.#headBytes === this.#head.length ? this.#head : this.#head.subarray(0, this.#headBytes);
  }

  /** The bytes after the head, or the last of them. */
  get tail(): Buffer {
    return this.#tail?.subarray(0, this.#tailBytes) ?? EMPTY;
  }

  add(chunk: Buffer): void {
    if (this.#bytes === 0 && this.#isShortLived && chunk.length <= this.#maxHeadBytes) {
      this.#head = chunk;
      this.#headBytes = this.#bytes = chunk.length;
      return;
    }
    this.#bytes += chunk.length;
    const space = this.#maxHeadBytes - this.#headBytes;
    if (space > 0) this.#addToHead(chunk.length <= space ? chunk : chunk.subarray(0, space));
    if (chunk.length > space) this.#addToTail(space > 0 ? chunk.subarray(space) : chunk);
  }

  clear(): void {
    this.#bytes = this.#headBytes = this.#tailBytes = 0;
    this.#tail = null;
    // Frees a large buffer, so that it is not held until the end of a long stream.
    if (!this.#isOwn || this.#head.length > 16 * FIRST_BYTES) {
      this.#head = EMPTY;
      this.#isOwn = false;
    }
  }

  #addToHead(chunk: Buffer): void {
    const needed = this.#headBytes + chunk.length;
    if (!this.#isOwn || needed > this.#head.length) {
      const grown = Buffer.allocUnsafeSlow(Math.min(this.#maxHeadBytes, Math.max(FIRST_BYTES, 2 * needed)));
      this.#head.copy(grown, 0, 0, this.#headBytes);
      this.#head = grown;
      this.#isOwn = true;
    }
    chunk.copy(this.#head, this.#headBytes);
    this.#headBytes = needed;
  }

  #addToTail(chunk: Buffer): void {
    const tail = (this.#tail ??= Buffer.allocUnsafeSlow(2 * TAIL_BYTES));
    const end = chunk.length > tail.length ? chunk.subarray(chunk.length - tail.length) : chunk;
    if (this.#tailBytes + end.length > tail.length) {
      // Frees half of the buffer at once, so that small chunks do not cause a move each.
      const retained = Math.min(this.#tailBytes, Math.max(TAIL_BYTES, 0), tail.length - end.length);
      tail.copyWithin(0, this.#tailBytes - retained, this.#tailBytes);
      this.#tailBytes = retained;
    }
    end.copy(tail, this.#tailBytes);
    this.#tailBytes += end.length;
  }
}
