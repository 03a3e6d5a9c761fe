/**
 * Memory budget for request bodies that are buffered before a use is drawn: small bodies until they are complete, bodies that are part of
 * a cache key until they are forwarded, and what a WebSocket client sends before the response to its handshake. Such a body may never be
 * completed, so all connections together have a limit.
 */
import { LinkedSet, LinkedSetMember } from '../core/linked-set.js';

/** Limit for all requests together. */
const MAX_BYTES = 16 * 1024 * 1024;

/** Memory of a chunk in addition to its bytes. A client can send a body in chunks of one byte. */
export const CHUNK_OVERHEAD_BYTES = 200;

export class BufferedBodies {
  /** Total size of all bodies buffered now. */
  bytes = 0;
  readonly #unfinished = new LinkedSet<BufferedBody>();

  /** @param onDiscarded called when the body is discarded because it is incomplete and others need the memory. */
  open(onDiscarded: () => void): BufferedBody {
    return new BufferedBody(this, onDiscarded);
  }

  /** A body can be discarded from its first byte on. Discarding one without a byte would free no memory. */
  track(body: BufferedBody): void {
    this.#unfinished.add(body);
  }

  /**
   * Discards incomplete bodies, the oldest first; a well-behaved client would have completed its body long ago. @returns whether there is
   * room.
   */
  makeRoom(bytes: number, wanted: BufferedBody): boolean {
    while (this.bytes + bytes > MAX_BYTES) {
      const oldest = this.#unfinished.first;
      if (!oldest || oldest === wanted) return false;
      oldest.discard();
    }
    return true;
  }

  untrack(body: BufferedBody): void {
    this.#unfinished.delete(body);
  }
}

/** The buffered body of one request. */
export class BufferedBody extends LinkedSetMember {
  readonly #all: BufferedBodies;
  readonly #onDiscarded: () => void;
  #bytes = 0;
  #isReleased = false;

  constructor(all: BufferedBodies, onDiscarded: () => void) {
    super();
    this.#all = all;
    this.#onDiscarded = onDiscarded;
  }

  /**
   * Reserves memory.
   *
   * @returns false if there is no room: the body must be streamed to the upstream, without a cache lookup.
   */
  reserve(bytes: number): boolean {
    if (this.#isReleased || !this.#all.makeRoom(bytes, this)) return false;
    if (this.#bytes === 0) this.#all.track(this);
    this.#bytes += bytes;
    this.#all.bytes += bytes;
    return true;
  }

  /** The body is complete and can no longer be discarded. */
  complete(): void {
    this.#all.untrack(this);
  }

  /** The body was forwarded, or its request has ended. */
  release(): void {
    this.#isReleased = true;
    this.#all.untrack(this);
    this.#all.bytes -= this.#bytes;
    this.#bytes = 0;
  }

  /** Whether no more of the body may be buffered. */
  get isReleased(): boolean {
    return this.#isReleased;
  }

  discard(): void {
    this.release();
    this.#onDiscarded();
  }
}
