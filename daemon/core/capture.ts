import type { Keeping } from './cache/caching.js';
import type { KeptAnswer } from './ports.js';
import type { Room } from './room.js';

/** An answer on its way into the cache. */
export class Capture {
  readonly #room: Room;
  readonly #head: Pick<KeptAnswer, 'status' | 'headers'>;
  readonly keeping: Keeping;
  readonly #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(room: Room, head: Pick<KeptAnswer, 'status' | 'headers'>, keeping: Keeping) {
    this.#room = room;
    this.#head = head;
    this.keeping = keeping;
  }

  /** @returns false when it has become too large, or there is no room for it. */
  add(piece: Buffer, mostBytes: number): boolean {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    this.#room.bytes += piece.length;
    return this.#bytes <= mostBytes && this.#room.isLeft(mostBytes);
  }

  whole(): KeptAnswer {
    const { ageMs, isForOptedIn } = this.keeping;
    // In memory of its own: a piece is a part of a buffer that would be held with it.
    const body = Buffer.allocUnsafeSlow(this.#bytes);
    let at = 0;
    for (const piece of this.#pieces) at += piece.copy(body, at);
    return { kind: 'answer', ...this.#head, body, ageMs, isForOptedIn };
  }

  /** Its room is free again. Once. */
  drop(): void {
    this.#room.bytes -= this.#bytes;
  }
}
