import type { Socket } from 'node:net';
import { GatheredBytes } from '../../core/gathered-bytes.js';
import { HeldMemory, type MemoryLimit } from '../../core/memory-limit.js';
import { Refusal, unavailable } from '../../core/refusal.js';

// A client should wait for the handshake's response before it sends more.
const MAX_BYTES = 64 * 1024;

/**
 * Bytes that a client sends before the response to its handshake. They must be read, since otherwise the daemon would not notice when the
 * client disconnects.
 */
export class EarlyBytes {
  readonly #onRefused: (refusal: Refusal) => void;
  readonly #gathered = new GatheredBytes();
  readonly #memory: HeldMemory;

  /** @param onRefused called when there are too many bytes or no memory for them; may be called again for later bytes. */
  constructor(limit: MemoryLimit, onRefused: (refusal: Refusal) => void) {
    this.#onRefused = onRefused;
    this.#memory = new HeldMemory(limit, () => {
      onRefused(unavailable());
    });
  }

  add(chunk: Buffer): void {
    if (this.#gathered.length + chunk.length > MAX_BYTES) {
      this.#onRefused(new Refusal('malformed_request', 'too much data was sent before the response to the handshake'));
      return;
    }
    this.#gathered.add(chunk);
    this.#memory.hold(this.#gathered.memory);
  }

  /** Returns the bytes to the socket, where they are read first. */
  returnTo(socket: Socket): void {
    if (this.#gathered.length > 0) socket.unshift(this.#gathered.take());
    this.discard();
  }

  discard(): void {
    this.#gathered.take();
    this.#memory.release();
  }
}
