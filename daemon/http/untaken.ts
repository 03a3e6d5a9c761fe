/** Responses that clients do not read: how long a client may leave one unread, and how many bytes all clients together may. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../core/ports.js';
import { type Holder, Hoard } from './hoard.js';

export interface UntakenOptions {
  clock: Clock;
  heap: { readonly isFull: boolean };
  /** Called for each connection that is ended because memory is short. */
  onDropped: () => void;
  /** How much all clients together may leave unread. */
  mostBytes?: number;
}

/** How long a client may take for each KiB of a response. */
export const TAKEN_WITHIN_MS = 30_000;
const ENOUGH_BYTES = 1024;
const LOOK_EVERY_MS = 1_000;
const MOST_BYTES = 16 * 1024 * 1024;

type Written = Socket & { _handle?: { writeQueueSize?: number } | null };

export class Untaken {
  readonly #options: UntakenOptions;
  readonly #hoard: Hoard<Answer>;
  readonly #answers = new Map<Socket, Answer>();
  #cancelLook: (() => void) | null = null;

  constructor(options: UntakenOptions) {
    this.#options = options;
    this.#hoard = new Hoard(options.mostBytes ?? MOST_BYTES, options.onDropped);
  }

  /**
   * Ends the connection if the client does not read the response in time. Call it after `end()`.
   *
   * @param isKept whether its bytes lie in the cache, which bounds them itself.
   */
  watch(res: ServerResponse, isKept = false): void {
    const { socket } = res;
    // As a rule the kernel has taken all of the response by now.
    if (!socket || socket.writableLength === 0 || this.#answers.has(socket)) return;
    const answer = new Answer(socket, this.#options.clock.monotonic());
    this.#answers.set(socket, answer);
    res.once('close', () => {
      this.#answers.delete(socket);
      this.#hoard.letGo(answer);
      if (this.#answers.size === 0) this.#rest();
    });
    if (!isKept) this.#hoard.hold(answer, socket.writableLength);
    this.#lookSoon();
  }

  #lookSoon(): void {
    this.#cancelLook ??= this.#options.clock.after(LOOK_EVERY_MS, () => {
      this.#cancelLook = null;
      this.#look();
      if (this.#answers.size > 0) this.#lookSoon();
    });
  }

  #rest(): void {
    this.#cancelLook?.();
    this.#cancelLook = null;
  }

  #look(): void {
    const { clock, heap } = this.#options;
    const now = clock.monotonic();
    for (const answer of this.#answers.values()) if (answer.isForgotten(now)) answer.drop();
    if (heap.isFull) this.#hoard.dropWhere(({ sinceMs }) => sinceMs < now - LOOK_EVERY_MS);
  }
}

class Answer implements Holder {
  readonly #socket: Written;
  sinceMs: number;
  bytes = 0;
  #left: number;

  constructor(socket: Written, sinceMs: number) {
    this.#socket = socket;
    this.sinceMs = sinceMs;
    this.#left = this.#waiting;
  }

  get #waiting(): number {
    return this.#socket._handle?.writeQueueSize ?? this.#socket.writableLength;
  }

  isForgotten(nowMs: number): boolean {
    const waiting = this.#waiting;
    if (waiting <= this.#left - ENOUGH_BYTES) {
      this.#left = waiting;
      this.sinceMs = nowMs;
    }
    return nowMs >= this.sinceMs + TAKEN_WITHIN_MS;
  }

  drop(): void {
    this.#socket.destroy();
  }
}
