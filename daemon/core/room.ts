import type { KeptAnswer } from './ports.js';

// Beyond one answer as large as may be.
const MOST_BYTES = 64 * 1024 * 1024;
// Of smaller ones the kernel takes in what their clients do not read.
const COUNTED_FROM_BYTES = 64 * 1024;

/**
 * What answers hold on their way into the cache and out of it, beside what is kept. One that has not all arrived may never be
 * kept, and a client need not read the one it is sent: neither may fill the memory.
 */
export class Room {
  /** Of those on their way in and out. */
  bytes = 0;
  /** On their way out, with how many clients are sent each. */
  readonly #sent = new Map<KeptAnswer, number>();

  /** Whether there is any left. @param mostBytes how large an answer may be. */
  isLeft(mostBytes: number): boolean {
    return this.bytes <= MOST_BYTES + mostBytes;
  }

  send(answer: KeptAnswer): void {
    const { length } = answer.body;
    if (length < COUNTED_FROM_BYTES) return;
    const clients = this.#sent.get(answer) ?? 0;
    if (clients === 0) this.bytes += length;
    this.#sent.set(answer, clients + 1);
  }

  /** The same answer, once for each time it was sent. */
  sent(answer: KeptAnswer): void {
    const clients = this.#sent.get(answer);
    if (clients === undefined) return;
    if (clients > 1) {
      this.#sent.set(answer, clients - 1);
      return;
    }
    this.#sent.delete(answer);
    this.bytes -= answer.body.length;
  }
}
