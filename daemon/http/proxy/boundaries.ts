/** Whether a stream stands between two of its messages. Both readers look at each byte at most once and keep some bytes. */

const LF = 0x0a;
const CR = 0x0d;

/** Of server-sent events, which end with an empty line. A line ends with LF, CR or both. */
export class EventBoundary {
  /** The last bytes so far, as many as two line ends can be. An empty stream is taken for one behind an event. */
  #last: number[] = [LF, LF];

  read(piece: Buffer): void {
    const bytes = piece.subarray(-3);
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
// What a frame's second byte says of its length when the length stands behind it.
const LENGTH_OF_TWO_BYTES = 126;
const LENGTH_OF_EIGHT_BYTES = 127;
const MASK_BYTES = 4;

/** Of a WebSocket's frames (RFC 6455, 5.2) in one direction. A frame of our own may stand between those of one message. */
export class FrameBoundary {
  /** Bytes of the frame's head so far: at most two, the length's eight, and the mask's four. */
  #head: number[] = [];
  /** Bytes of the frame's content that are to come. */
  #content = 0;
  #isClosed = false;

  read(piece: Buffer): void {
    let at = 0;
    while (at < piece.length) {
      if (this.#content > 0) {
        const skipped = Math.min(this.#content, piece.length - at);
        this.#content -= skipped;
        at += skipped;
      } else {
        this.#readHead(piece[at] ?? 0);
        at += 1;
      }
    }
  }

  /** Between two frames, and none of them was a close frame, behind which nothing may come. */
  get isReached(): boolean {
    return this.#head.length === 0 && this.#content === 0 && !this.#isClosed;
  }

  #readHead(byte: number): void {
    this.#head.push(byte);
    const [first = 0, second] = this.#head;
    if (second === undefined || this.#head.length < headLength(second)) return;
    this.#isClosed ||= (first & 0x0f) === CLOSE;
    this.#content = contentLength(second & 0x7f, this.#head);
    this.#head = [];
  }
}

const headLength = (second: number) => 2 + lengthBytes(second & 0x7f) + (second & 0x80 ? MASK_BYTES : 0);

function lengthBytes(length: number): number {
  if (length === LENGTH_OF_EIGHT_BYTES) return 8;
  return length === LENGTH_OF_TWO_BYTES ? 2 : 0;
}

/** A length beyond 2^53 loses its last digits, and nobody sends that much. */
function contentLength(length: number, head: readonly number[]): number {
  const bytes = lengthBytes(length);
  return bytes === 0 ? length : head.slice(2, 2 + bytes).reduce((sum, byte) => sum * 256 + byte, 0);
}
