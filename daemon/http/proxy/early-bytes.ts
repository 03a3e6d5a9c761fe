import type { Socket } from 'node:net';
import { type BufferedBodies, type BufferedBody, CHUNK_OVERHEAD_BYTES } from '../buffered-bodies.js';
import { Refusal, unavailable } from '../../core/refusal.js';

// A client should wait for the handshake's response before it sends more.
const MAX_BYTES = 64 * 1024;

/**
 * Bytes that a client sends before the response to its handshake. They must be read, since otherwise the daemon would not notice when the
 * client disconnects.
 */
export class EarlyBytes {
  readonly #onRefused: (refusal: Refusal) => void;
  #chunks: Buffer[] = [];
  #bytes = 0;
  readonly #buffered: BufferedBody;

  /** @param onRefused called when there are too many bytes or no memory for them; may be called again for later bytes. */
  constructor(bodies: BufferedBodies, onRefused: (refusal: Refusal) => void) {
    this.#onRefused = onRefused;
    this.#buffered = bodies.open(() => {
      onRefused(unavailable());
    });
  }

  add(chunk: Buffer): void {
    if (chunk.length === 0) return;
    this.#bytes += chunk.length;
    if (this.#bytes > MAX_BYTES) {
      this.#onRefused(new Refusal('malformed_request', 'too much data was sent before the response to the handshake'));
    } else if (this.#buffered.reserve(chunk.length + CHUNK_OVERHEAD_BYTES)) this.#chunks.push(chunk);
    else this.#onRefused(unavailable());
  }

  /** Returns the bytes to the socket, where they are read first. */
  returnTo(socket: Socket): void {
    if (this.#bytes > 0) socket.unshift(Buffer.concat(this.#chunks));
    this.discard();
  }

  discard(): void {
    this.#chunks = [];
    this.#buffered.release();
  }
}
