import type { ServerResponse } from 'node:http';

const flushPending = (delivery: ResponseWriter) => {
  delivery.flushPending();
};

/** Writer of a response to the client, chunk by chunk and no faster than the client reads. */
export class ResponseWriter {
  readonly #res: ServerResponse;
  /** Called when the client has read what was buffered. */
  readonly #onDrain: () => void;
  #isHeadPending = false;
  #firstChunk: Buffer | null = null;
  #awaitsDrain = false;

  constructor(res: ServerResponse, onDrain: () => void) {
    this.#res = res;
    this.#onDrain = onDrain;
  }

  /** @param headers names and values in turn. */
  head(status: number, headers: string[]): void {
    // Node's own reason phrase: the upstream's could break the status line.
    this.#res.writeHead(status, headers);
    // The head is sent together with a first chunk that arrived with it, but does not wait for one that arrives later.
    this.#isHeadPending = true;
    process.nextTick(flushPending, this);
  }

  /** @returns false if the client's buffer is full; wait for `onDrain`. */
  data(chunk: Buffer): boolean {
    if (this.#isHeadPending && this.#firstChunk === null) {
      this.#firstChunk = chunk;
      return true;
    }
    this.flushPending();
    if (this.#res.write(chunk)) return true;
    if (!this.#awaitsDrain) {
      this.#awaitsDrain = true;
      this.#res.once('drain', () => {
        this.#awaitsDrain = false;
        this.#onDrain();
      });
    }
    return false;
  }

  /**
   * Writes a last chunk before the connection is cut. When this returns, the kernel has the chunk, if the client has read everything
   * before it.
   */
  writeLast(chunk: Buffer): void {
    this.flushPending();
    const res = this.#res;
    res.write(chunk);
    // Node buffers writes until the end of the turn, and cutting the connection would discard them.
    while (res.socket && res.socket.writableCorked > 0) res.socket.uncork();
  }

  end(): void {
    const chunk = this.#firstChunk;
    if (this.#isHeadPending && chunk !== null) {
      this.#isHeadPending = false;
      this.#firstChunk = null;
      this.#res.end(chunk); // In one write with the head.
    } else {
      this.flushPending();
      this.#res.end();
    }
  }

  /** Sends the head, and the chunk that arrived with it, if they have not been sent yet. */
  flushPending(): void {
    if (!this.#isHeadPending || this.#res.closed) return;
    const chunk = this.#firstChunk;
    this.#isHeadPending = false;
    this.#firstChunk = null;
    if (chunk === null) this.#res.flushHeaders();
    else this.#res.write(chunk); // If this fills the client's buffer, the next chunk notices it.
  }
}
