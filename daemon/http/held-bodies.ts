/**
 * The request bodies that are held in memory before anything is spent on them: small ones until they are whole, those that the cache is
 * asked by until they are forwarded, and what a WebSocket's client sends before its handshake is answered. Nobody knows yet whether
 * they will ever be whole, so all connections together may hold only so much.
 */
import { InFlight, Member } from '../core/in-flight.js';

/** Of all requests together. */
const MOST_BYTES = 16 * 1024 * 1024;

/** What a piece takes beside its bytes. A client can send a body in pieces of one byte. */
export const PIECE_OVERHEAD_BYTES = 200;

export class HeldBodies {
  /** Of all bodies that are held now. */
  bytes = 0;
  readonly #unfinished = new InFlight<HeldBody>();

  /** @param onGivenUp called when the body is given up, because it is not whole and others need the memory. */
  open(onGivenUp: () => void): HeldBody {
    return new HeldBody(this, onGivenUp);
  }

  /** From its first byte on a body can be given up. To give up one without a byte would free no memory. */
  began(body: HeldBody): void {
    this.#unfinished.add(body);
  }

  /** Gives up unfinished bodies, the oldest first: a client that means well would have sent its body long ago. @returns whether there is room. */
  makeRoom(bytes: number, wanted: HeldBody): boolean {
    while (this.bytes + bytes > MOST_BYTES) {
      const oldest = this.#unfinished.first;
      if (!oldest || oldest === wanted) return false;
      oldest.giveUp();
    }
    return true;
  }

  forget(body: HeldBody): void {
    this.#unfinished.delete(body);
  }
}

/** What one request holds. */
export class HeldBody extends Member {
  readonly #all: HeldBodies;
  readonly #onGivenUp: () => void;
  #bytes = 0;
  #isReleased = false;

  constructor(all: HeldBodies, onGivenUp: () => void) {
    super();
    this.#all = all;
    this.#onGivenUp = onGivenUp;
  }

  /**
   * Counts memory.
   *
   * @returns false when there is no room: the body is to be forwarded as it comes, without a look into the cache.
   */
  takes(bytes: number): boolean {
    if (this.#isReleased || !this.#all.makeRoom(bytes, this)) return false;
    if (this.#bytes === 0) this.#all.began(this);
    this.#bytes += bytes;
    this.#all.bytes += bytes;
    return true;
  }

  /** The body is whole: it is not given up any more. */
  finish(): void {
    this.#all.forget(this);
  }

  /** The body was forwarded, or its request is over. */
  release(): void {
    this.#isReleased = true;
    this.#all.forget(this);
    this.#all.bytes -= this.#bytes;
    this.#bytes = 0;
  }

  /** Whether nothing more of it may be held. */
  get isReleased(): boolean {
    return this.#isReleased;
  }

  giveUp(): void {
    this.release();
    this.#onGivenUp();
  }
}
