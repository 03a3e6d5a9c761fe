/** Detectors of message boundaries in a stream. Both read each byte at most once and remember only a few bytes. */

const LF = 0x0a;
const CR = 0x0d;

/** Boundary between server-sent events. An event ends with an empty line; a line ends with LF, CR or CRLF. */
export class EventBoundary {
  /** The last bytes so far: as many as two line ends can take. An empty stream counts as being between events. */
  #last: number[] = [LF, LF];

  read(chunk: Buffer): void {
    const bytes = chunk.subarray(-3);
    this.#last = bytes.length === 3 ? [...bytes] : [...this.#last, ...bytes].slice(-3);
  }

  get isReached(): boolean {
    const last = [...this.#last];
    if (last.at(-1) === LF && last.at(-2) === CR) last.pop();
    return isLineEnd(last.at(-1)) && isLineEnd(last.at(-2));
  }
}

const isLineEnd = (byte: number | undefined) => byte === LF || byte === CR;

const CLOSE = 0x8;
// Values of a frame's length field that mean that the length follows in 2 or 8 bytes.
const LENGTH_OF_TWO_BYTES = 126;
const LENGTH_OF_EIGHT_BYTES = 127;
const MASK_BYTES = 4;

/**
 * Boundary between WebSocket frames (RFC 6455, 5.2) in one direction. A control frame may be inserted between the frames of one message.
 * There may be any number of frames, however small, so nothing is allocated for them.
 */
export class FrameBoundary {
  /** Bytes of the frame's header so far: up to 2, plus 8 for the length and 4 for the mask. */
  #headBytes = 0;
  /** Bytes that follow the first two of the header: of the length, then of the mask. */
  #lengthBytes = 0;
  #maskBytes = 0;
  /** Bytes of the frame's payload that have not arrived yet. */
  #content = 0;
  #isClosed = false;

  read(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#headBytes === 0 && this.#content > 0) {
        const skipped = Math.min(this.#content, chunk.length - at);
        this.#content -= skipped;
        at += skipped;
      } else {
        this.#readHead(chunk[at] ?? 0);
        at += 1;
      }
    }
  }

  /** Whether the stream is between two frames and no close frame has been sent; nothing may follow a close frame. */
  get isReached(): boolean {
    return this.#headBytes === 0 && this.#content === 0 && !this.#isClosed;
  }

  #readHead(byte: number): void {
    this.#headBytes += 1;
    if (this.#headBytes === 1) {
      this.#isClosed ||= (byte & 0x0f) === CLOSE;
      return;
    }
    if (this.#headBytes === 2) {
      const length = byte & 0x7f;
      this.#lengthBytes = length === LENGTH_OF_EIGHT_BYTES ? 8 : length === LENGTH_OF_TWO_BYTES ? 2 : 0;
      this.#maskBytes = (byte & 0x80) === 0 ? 0 : MASK_BYTES;
      this.#content = this.#lengthBytes === 0 ? length : 0;
    } else if (this.#headBytes <= 2 + this.#lengthBytes) {
      // A length above 2^53 loses its last digits; no client sends that much.
      this.#content = this.#content * 256 + byte;
    }
    if (this.#headBytes === 2 + this.#lengthBytes + this.#maskBytes) this.#headBytes = 0;
  }
}
