/** Limits for responses that clients do not read: the time for each client, and the bytes for all clients together. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { Clock } from '../core/ports.js';
import { HeldMemory, type MemoryLimit } from '../core/memory-limit.js';

export interface UnreadResponsesOptions {
  clock: Clock;
  memory: MemoryLimit;
}

/** Time in which a client must read each KiB of a response. */
export const READ_KIB_WITHIN_MS = 30_000;
const KIB = 1024;
const CHECK_EVERY_MS = 1_000;

/** A connection to a client, or from a worker (`Tunnel`). */
type Written = Socket & {
  takenBytes?: number;
  _handle?: { bytesWritten?: number; writeQueueSize?: number } | null;
};

export class UnreadResponses {
  readonly #options: UnreadResponsesOptions;
  readonly #responses = new Map<Socket, UnreadResponse>();
  #cancelCheck: (() => void) | null = null;

  constructor(options: UnreadResponsesOptions) {
    this.#options = options;
  }

  /** Watches a response that some module will write or pipe: from its end, or from the first time that its source waits for the client. */
  watchAll(res: ServerResponse): void {
    const watch = () => {
      this.watch(res);
    };
    res.once('prefinish', watch);
    res.on('pipe', (source: Readable) => source.on('pause', watch));
  }

  /**
   * Closes the connection if the client does not read the response in time. Call it after `end()`, and whenever what is not ended yet waits for the
   * client.
   *
   * @param isCached whether the body is in the cache, which has its own limit.
   */
  watch(res: ServerResponse, isCached = false): void {
    const { socket } = res;
    // Usually the kernel has taken the complete response by now.
    if (!socket || socket.writableLength === 0) return;
    const known = this.#responses.get(socket);
    if (known) {
      if (!isCached) known.count();
      return;
    }
    const { clock, memory } = this.#options;
    const response = new UnreadResponse(socket, memory, clock.monotonic());
    this.#responses.set(socket, response);
    res.once('close', () => {
      this.#responses.delete(socket);
      response.release();
      if (this.#responses.size === 0) this.#cancelScheduled();
    });
    if (!isCached) response.count();
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
    const now = this.#options.clock.monotonic();
    for (const response of this.#responses.values()) {
      if (response.isStalled(now)) response.drop();
      else if (response.isTaken) response.release();
    }
  }
}

class UnreadResponse {
  readonly #socket: Written;
  readonly #memory: HeldMemory;
  /** When the client last read a KiB (monotonic). */
  #sinceMs: number;
  #takenBytes: number;

  constructor(socket: Written, limit: MemoryLimit, sinceMs: number) {
    this.#socket = socket;
    this.#memory = new HeldMemory(limit, () => {
      this.drop();
    });
    this.#sinceMs = sinceMs;
    this.#takenBytes = this.#taken;
  }

  /** Bytes that the kernel has taken, or the other process. More may be written meanwhile. */
  get #taken(): number {
    const { takenBytes, _handle: handle } = this.#socket;
    return takenBytes ?? (handle?.bytesWritten ?? 0) - (handle?.writeQueueSize ?? 0);
  }

  /** Whether nothing waits for the client now. */
  get isTaken(): boolean {
    return this.#socket.writableLength === 0;
  }

  count(): void {
    this.#memory.hold(this.#socket.writableLength);
  }

  release(): void {
    this.#memory.release();
  }

  isStalled(nowMs: number): boolean {
    const taken = this.#taken;
    if (this.isTaken || taken >= this.#takenBytes + KIB) {
      this.#takenBytes = taken;
      this.#sinceMs = nowMs;
    }
    return nowMs >= this.#sinceMs + READ_KIB_WITHIN_MS;
  }

  drop(): void {
    this.#socket.destroy();
  }
}
