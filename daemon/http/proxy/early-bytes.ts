import type { Socket } from 'node:net';
import { type HeldBodies, type HeldBody, PIECE_OVERHEAD_BYTES } from '../held-bodies.js';
import { Refusal, unavailable } from '../../core/refusal.js';

// A client is to wait for the answer before it says more.
const MOST_BYTES = 64 * 1024;

/** What a client sends before its handshake is answered. If it were not read, nobody would notice that the client leaves. */
export class EarlyBytes {
  readonly #onRefused: (refusal: Refusal) => void;
  #pieces: Buffer[] = [];
  #bytes = 0;
  readonly #held: HeldBody;

  /** @param onRefused called when there is too much, or no memory for it; then perhaps again for what follows. */
  constructor(bodies: HeldBodies, onRefused: (refusal: Refusal) => void) {
    this.#onRefused = onRefused;
    this.#held = bodies.open(() => {
      onRefused(unavailable());
    });
  }

  add(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#bytes += piece.length;
    if (this.#bytes > MOST_BYTES) {
      this.#onRefused(new Refusal('malformed_request', 'too much was sent before the answer to the handshake'));
    } else if (this.#held.takes(piece.length + PIECE_OVERHEAD_BYTES)) this.#pieces.push(piece);
    else this.#onRefused(unavailable());
  }

  /** Puts them where they are read first. */
  giveBackTo(socket: Socket): void {
    if (this.#bytes > 0) socket.unshift(Buffer.concat(this.#pieces));
    this.forget();
  }

  forget(): void {
    this.#pieces = [];
    this.#held.release();
  }
}
