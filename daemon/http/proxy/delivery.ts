import type { ServerResponse } from 'node:http';

const sendWaiting = (delivery: Delivery) => {
  delivery.sendWaiting();
};

/** An answer's way to the client, piece by piece and no faster than it is taken. */
export class Delivery {
  readonly #res: ServerResponse;
  /** The client has taken what was held up. */
  readonly #onDrain: () => void;
  #isHeadWaiting = false;
  #firstPiece: Buffer | null = null;
  #awaitsDrain = false;

  constructor(res: ServerResponse, onDrain: () => void) {
    this.#res = res;
    this.#onDrain = onDrain;
  }

  /** @param headers names and values in turn. */
  head(status: number, headers: string[]): void {
    // The reason phrase is ours: the upstream's may hold what breaks a status line.
    this.#res.writeHead(status, headers);
    // It goes out together with what arrived with it, and does not wait for what takes its time.
    this.#isHeadWaiting = true;
    process.nextTick(sendWaiting, this);
  }

  /** @returns false when the client takes no more for now. */
  data(piece: Buffer): boolean {
    if (this.#isHeadWaiting && this.#firstPiece === null) {
      this.#firstPiece = piece;
      return true;
    }
    this.sendWaiting();
    if (this.#res.write(piece)) return true;
    if (!this.#awaitsDrain) {
      this.#awaitsDrain = true;
      this.#res.once('drain', () => {
        this.#awaitsDrain = false;
        this.#onDrain();
      });
    }
    return false;
  }

  /** A piece behind which the connection is cut: it is with the kernel when this returns, if the client has taken all before it. */
  last(piece: Buffer): void {
    this.sendWaiting();
    const res = this.#res;
    res.write(piece);
    // Node holds back what is written until the end of the turn, and a cut would throw it away.
    while (res.socket && res.socket.writableCorked > 0) res.socket.uncork();
  }

  end(): void {
    const piece = this.#firstPiece;
    if (this.#isHeadWaiting && piece !== null) {
      this.#isHeadWaiting = false;
      this.#firstPiece = null;
      this.#res.end(piece); // One write with the head.
    } else {
      this.sendWaiting();
      this.#res.end();
    }
  }

  /** Sends the head, and the piece that arrived with it, if they have not gone out yet. */
  sendWaiting(): void {
    if (!this.#isHeadWaiting || this.#res.closed) return;
    const piece = this.#firstPiece;
    this.#isHeadWaiting = false;
    this.#firstPiece = null;
    if (piece === null) this.#res.flushHeaders();
    else this.#res.write(piece); // Should it fill the client's buffer, the next piece will find that out.
  }
}
