import type { ServerResponse } from 'node:http';
import type { Outcome } from '../../core/events.js';
import { HeldMemory, type MemoryLimit } from '../../core/memory-limit.js';
import { Outlet } from '../outlet.js';
import type { Scheduler, TurnTask } from '../scheduler.js';
import type { UnreadResponses } from '../unread-responses.js';

export interface DrainListener {
  /** The client has read what was buffered. */
  onDrain(): void;
}

export interface ResponseWriterOptions {
  memory: MemoryLimit;
  scheduler: Pick<Scheduler, 'atEndOfTurn'>;
  unreadResponses: Pick<UnreadResponses, 'watch'>;
}

interface ResponseOwner extends DrainListener {
  readonly options: ResponseWriterOptions;
  destroy(outcome: Outcome): void;
}

/** Writer of a response to the client, as it arrives and no faster than the client reads. */
export class ResponseWriter implements TurnTask {
  readonly #res: ServerResponse;
  readonly #owner: ResponseOwner;
  /** Null for a response that arrived in one piece. */
  #outlet: Outlet | null = null;
  #memory: HeldMemory | null = null;
  #isHeadPending = false;
  #firstChunk: Buffer | null = null;
  #isEndPending = false;

  constructor(res: ServerResponse, owner: ResponseOwner) {
    this.#res = res;
    this.#owner = owner;
  }

  #newOutlet(): Outlet {
    const owner = this.#owner;
    const res = this.#res;
    const memory = new HeldMemory(owner.options.memory, () => {
      owner.destroy('client_closed');
    });
    this.#memory = memory;
    return new Outlet({
      write: (bytes, written) => res.write(bytes, written),
      onReady: () => {
        owner.onDrain();
      },
      memory,
    });
  }

  /** @param headers names and values in turn. */
  head(status: number, headers: string[]): void {
    // Node's own reason phrase: the upstream's could break the status line.
    this.#res.writeHead(status, headers);
    // The head is sent together with what arrives of the body in the same turn, but does not wait for more.
    this.#isHeadPending = true;
    this.#owner.options.scheduler.atEndOfTurn(this);
  }

  /** @returns false if the client does not take more for now; wait for `onDrain`. */
  data(chunk: Buffer): boolean {
    if (this.#isHeadPending && this.#firstChunk === null) {
      this.#firstChunk = chunk;
      return true;
    }
    this.flushPending();
    return (this.#outlet ??= this.#newOutlet()).send(chunk);
  }

  get isUnread(): boolean {
    return this.#outlet?.isBusy === true || this.#res.writableNeedDrain;
  }

  close(): void {
    this.#memory?.release();
  }

  /**
   * Writes a last chunk before the connection is cut. When this returns, the kernel has the chunk, if the client has read everything
   * before it.
   */
  writeLast(chunk: Buffer): void {
    this.flushPending();
    this.#outlet?.flush();
    this.#res.write(chunk);
    this.#uncork();
  }

  /**
   * Sends what is pending before the connection is cut, as `writeLast` does. @returns whether that ended the response.
   */
  flushNow(): boolean {
    if (!this.#isHeadPending) return false;
    const isComplete = this.flushPending();
    this.#uncork();
    return isComplete;
  }

  /** Node buffers writes until the end of the turn, and cutting the connection would discard them. */
  #uncork(): void {
    const { socket } = this.#res;
    while (socket && socket.writableCorked > 0) socket.uncork();
  }

  end(): void {
    if (this.#isHeadPending) {
      this.#isEndPending = true;
      return;
    }
    this.#outlet?.flush();
    this.#res.end();
    this.#owner.options.unreadResponses.watch(this.#res);
  }

  atEndOfTurn(): void {
    this.flushPending();
  }

  /** Sends the head, and what arrived with it, if they have not been sent yet. @returns whether that ended the response. */
  flushPending(): boolean {
    const res = this.#res;
    if (!this.#isHeadPending || res.closed) return false;
    const chunk = this.#firstChunk;
    this.#isHeadPending = false;
    this.#firstChunk = null;
    if (this.#isEndPending) {
      if (chunk === null) res.end();
      else endWithBody(res, chunk);
      this.#owner.options.unreadResponses.watch(res);
    } else if (chunk === null) res.flushHeaders();
    else (this.#outlet ??= this.#newOutlet()).send(chunk); // If this fills the client's buffer, the next chunk notices it.
    return this.#isEndPending;
  }
}

// Above this size, copying the body costs more than a second buffer does.
const MAX_TEXT_BYTES = 16 * 1024;

/** A response of Node, with its head as text once `writeHead` was called. */
type HeadedResponse = ServerResponse & { _header: unknown; _hasBody: unknown };

/**
 * Ends a response of which only the head was given to `writeHead`, with its complete body.
 *
 * Node passes head and body to the kernel as a list of chunks. As one text they take one plain write, which is much cheaper. latin1 maps
 * each byte to one character.
 */
export function endWithBody(res: ServerResponse, body: Buffer): void {
  const headed = res as HeadedResponse;
  const { _header: head } = headed;
  if (typeof head !== 'string' || headed._hasBody !== true || body.length === 0 || body.length > MAX_TEXT_BYTES) {
    res.end(body);
    return;
  }
  const text = body.toString('latin1');
  // Node appends the last chunk.
  headed._header = head + (res.chunkedEncoding ? `${body.length.toString(16)}\r\n${text}\r\n` : text);
  res.end();
}
