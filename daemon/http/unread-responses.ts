/** Limits for responses that clients do not read: the time for each client, and the bytes for all clients together. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../core/ports.js';
import { type MemoryHolder, MemoryLimit } from './memory-limit.js';

export interface UnreadResponsesOptions {
  clock: Clock;
  heap: { readonly isFull: boolean };
  /** Called for each connection that is closed because memory is short. */
  onDropped: () => void;
  /** Limit for the unread bytes of all clients together. */
  maxBytes?: number;
}

/** Time in which a client must read each KiB of a response. */
export const READ_KIB_WITHIN_MS = 30_000;
const KIB = 1024;
const CHECK_EVERY_MS = 1_000;
const DEFAULT_MAX_BYTES = 16 * 1024 * 1024;

type Written = Socket & { _handle?: { writeQueueSize?: number } | null };

export class UnreadResponses {
  readonly #options: UnreadResponsesOptions;
  readonly #memory: MemoryLimit<UnreadResponse>;
  readonly #responses = new Map<Socket, UnreadResponse>();
  #cancelCheck: (() => void) | null = null;

  constructor(options: UnreadResponsesOptions) {
    this.#options = options;
    this.#memory = new MemoryLimit(options.maxBytes ?? DEFAULT_MAX_BYTES, options.onDropped);
  }

  /**
   * Closes the connection if the client does not read the response in time. Call it after `end()`.
   *
   * @param isCached whether the body is in the cache, which has its own limit.
   */
  watch(res: ServerResponse, isCached = false): void {
    const { socket } = res;
    // Usually the kernel has taken the complete response by now.
    if (!socket || socket.writableLength === 0 || this.#responses.has(socket)) return;
    const response = new UnreadResponse(socket, this.#options.clock.monotonic());
    this.#responses.set(socket, response);
    res.once('close', () => {
      this.#responses.delete(socket);
      this.#memory.release(response);
      if (this.#responses.size === 0) this.#cancelScheduled();
    });
    if (!isCached) this.#memory.hold(response, socket.writableLength);
    this.#scheduleCheck();
  }

  #scheduleCheck(): void {
    this.#cancelCheck ??= this.#options.clock.after(CHECK_EVERY_MS, () => {
      this.#cancelCheck = null;
      this.#check();
      if (this.#responses.size > 0) this.#scheduleCheck();
    });
  }

  #cancelScheduled(): void {
    this.#cancelCheck?.();
    this.#cancelCheck = null;
  }

  #check(): void {
    const { clock, heap } = this.#options;
    const now = clock.monotonic();
    for (const response of this.#responses.values()) if (response.isStalled(now)) response.drop();
    if (heap.isFull) this.#memory.dropWhere(({ sinceMs }) => sinceMs < now - CHECK_EVERY_MS);
  }
}

class UnreadResponse implements MemoryHolder {
  readonly #socket: Written;
  sinceMs: number;
  bytes = 0;
  #unreadBytes: number;

  constructor(socket: Written, sinceMs: number) {
    this.#socket = socket;
    this.sinceMs = sinceMs;
    this.#unreadBytes = this.#queuedBytes;
  }

  get #queuedBytes(): number {
    return this.#socket._handle?.writeQueueSize ?? this.#socket.writableLength;
  }

  isStalled(nowMs: number): boolean {
    const waiting = this.#queuedBytes;
    if (waiting <= this.#unreadBytes - KIB) {
      this.#unreadBytes = waiting;
      this.sinceMs = nowMs;
    }
    return nowMs >= this.sinceMs + READ_KIB_WITHIN_MS;
  }

  drop(): void {
    this.#socket.destroy();
  }
}
