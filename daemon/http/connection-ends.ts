/**
 * Closing of client connections: after early responses, in the middle of a response, to make room for new connections, and because a client
 * does not read.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { HeldMemory, type MemoryLimit } from '../core/memory-limit.js';
import type { Clock } from '../core/ports.js';

/** A socket of Node's HTTP server, with its current response. */
export type HttpSocket = Socket & { _httpMessage?: ServerResponse | null };

/** The client's connection ended before its request was complete. No response can be sent. */
export class ClientGone extends Error {
  override name = 'ClientGone';
}

/** How long a client may keep sending after an early response. */
export const LINGER_MS = 2_000;

// Several such connections are read in turn, each for so long.
const TURN_MS = 1;

/**
 * Connections whose input is dropped. One at a time is read, so that those of many clients that do not stop cost others little time and
 * memory: one read can be 2 MB.
 */
class LingeringSockets {
  readonly #clock: Clock;
  readonly #sockets = new Set<Socket>();
  #reading: Socket | null = null;
  #isTurning = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(socket: Socket): void {
    this.#sockets.add(socket);
    if (this.#sockets.size === 1) this.#reading = socket;
    // Not at once: Node resumes the connection when its request begins to flow.
    else
      setImmediate(() => {
        if (this.#sockets.has(socket) && this.#reading !== socket) socket.pause();
        this.#turnSoon();
      });
  }

  delete(socket: Socket): void {
    this.#sockets.delete(socket);
    if (this.#reading === socket) this.#reading = null;
    if (!socket.destroyed) socket.resume();
  }

  #turnSoon(): void {
    if (this.#isTurning) return;
    this.#isTurning = true;
    this.#clock.after(TURN_MS, () => {
      this.#isTurning = false;
      this.#turn();
    });
  }

  #turn(): void {
    const [socket] = this.#sockets;
    this.#reading?.pause();
    this.#reading = socket ?? null;
    if (!socket) return;
    this.#sockets.delete(socket);
    this.#sockets.add(socket); // As the last one.
    socket.resume();
    if (this.#sockets.size > 1) this.#turnSoon();
  }
}

/** Those of each daemon, which its clock stands for. */
const socketsOf = new WeakMap<Clock, LingeringSockets>();
const lingering = new WeakSet<Socket>();

/** Whether the connection still receives a request that already has its response. */
export const isLingering = (socket: Socket) => lingering.has(socket);

/**
 * After a response that was sent before the request was complete: reads and drops what the client still sends, for `LINGER_MS`. Closing
 * immediately would reset the connection, and the client could lose the response.
 */
export function linger(req: IncomingMessage, clock: Clock): void {
  const { socket } = req;
  if (req.complete || req.destroyed || lingering.has(socket)) return;
  const cancel = clock.after(LINGER_MS, () => socket.destroy());
  const sockets = socketsOf.get(clock) ?? new LingeringSockets(clock);
  socketsOf.set(clock, sockets);
  const stop = () => {
    cancel();
    lingering.delete(socket);
    sockets.delete(socket);
    socket.off('close', stop);
    // Our side was already closed after the response.
    if (socket.writableEnded) socket.destroy();
  };
  lingering.add(socket);
  sockets.add(socket);
  req.on('error', () => undefined);
  req.once('end', stop);
  // Not the request's own `close`: after the response, Node forgets the request when the connection ends.
  socket.once('close', stop);
  // A reader of the request's chunks has stopped and would block the flow. Removed only if there is one: removing none would stop a
  // request that flows already, and its end would never come.
  if (req.listenerCount('readable') > 0) req.removeAllListeners('readable');
  req.resume();
}

/**
 * Prepares a response that may be sent before the request is complete and be the last on its connection: only our side is closed after
 * it, and `linger` does the rest. Node would close both sides.
 */
export function closeAfterRequest(req: IncomingMessage): void {
  const { socket } = req;
  socket.destroySoon = () => {
    if (req.complete) Socket.prototype.destroySoon.call(socket);
    else socket.end();
  };
}

/**
 * Closes our side and reads and drops input for a while, as `linger` does. For a connection that Node has handed over, or whose bytes
 * belong to no request.
 */
export function endAndLinger(socket: Socket, clock: Clock): void {
  socket.resume();
  socket.end(() => {
    if (socket.destroyed) return;
    socket.once(
      'close',
      clock.after(LINGER_MS, () => socket.destroy()),
    );
  });
}

/** Closes the connection in the middle of a response, so that the client cannot take the truncated response for a complete one. */
export function cut(res: ServerResponse): void {
  const { socket } = res;
  // In HTTP/1.0 the end of the connection can mean the end of the response, so the connection is reset instead of closed. A Unix socket,
  // which has no address, cannot be reset.
  if (res.req.httpVersion === '1.0' && socket?.remoteAddress !== undefined) socket.resetAndDestroy();
  res.destroy();
}

// A search for idle connections visits all of them, in vain while all are busy.
const SEARCH_AGAIN_AFTER_MS = 100;
// Browsers and clients with a pool open connections in advance. One that has sent nothing for this time counts as idle.
const SILENT_MS = 1_000;

/** The open connections of a server. */
export interface OpenConnections {
  /**
   * Responses that have not begun will close their connection. A client that reuses its connection would lose the request that it sends
   * just as the connection is closed.
   */
  stopKeepAlive: () => void;
}

/**
 * Limits the connections of a server. When the last slot is taken, idle connections are closed, so that a client that only holds
 * connections cannot block others. Idle means: between two requests, or no byte received yet.
 *
 * @param isSlow whether a connection takes too long for a request head; it is closed as well.
 */
export function limitConnections(
  server: Server,
  maxConnections: number,
  clock: Clock,
  isSlow: (socket: Socket) => boolean,
): OpenConnections {
  /** The connections with the time at which each was opened. */
  const sockets = new Map<Socket, number>();
  const close = (isUnused: (socket: Socket, hadTime: boolean) => boolean) => {
    const openedBeforeMs = clock.monotonic() - SILENT_MS;
    const unused = [...sockets].filter(([socket, openedAtMs]) => isUnused(socket, openedAtMs < openedBeforeMs));
    for (const [socket] of unused) socket.destroy();
    return unused.length;
  };
  const isUnused = (socket: Socket, hadTime: boolean) => isIdle(socket) || isSilent(socket, hadTime);
  let nextSearchAtMs = -Infinity;
  const makeRoom = () => {
    const now = clock.monotonic();
    if (now < nextSearchAtMs) return;
    const closed = close((socket, hadTime) => isUnused(socket, hadTime) || isSlow(socket));
    if (closed < maxConnections / 10) nextSearchAtMs = now + SEARCH_AGAIN_AFTER_MS;
  };
  server.maxConnections = maxConnections;
  server.on('connection', (socket: Socket) => {
    if (sockets.has(socket)) return; // Seen before: its request asked for another protocol and was served without it.
    sockets.set(socket, clock.monotonic());
    socket.once('close', () => sockets.delete(socket));
    if (sockets.size >= maxConnections) makeRoom();
  });
  server.on('drop', makeRoom);
  // Node's own method takes a response that is not completely sent for a finished one, and the rest of it would be lost.
  server.closeIdleConnections = () => {
    close(isUnused);
  };
  return {
    stopKeepAlive() {
      for (const socket of sockets.keys()) {
        const { _httpMessage: current } = socket as HttpSocket;
        if (current && !current.headersSent) current.shouldKeepAlive = false;
      }
    },
  };
}

/** No byte has been received, which Node counts as busy. */
const isSilent = (socket: Socket, hadTime: boolean) => hadTime && socket.bytesRead === 0;

/** Between two requests: Node sets a timeout after a response, and removes it with the next request head. */
const isIdle = (socket: Socket) => (socket.timeout ?? 0) > 0 && !isLingering(socket);

// ---- clients that do not read

export interface UnreadResponsesOptions {
  clock: Clock;
  memory: MemoryLimit;
}

/** Time in which a client must read each KiB of a response. */
const READ_KIB_WITHIN_MS = 30_000;
const KIB = 1024;
const CHECK_EVERY_MS = 1_000;

/** A connection to a client, or from a worker (`Tunnel`). */
type Written = Socket & {
  takenBytes?: number;
  _handle?: { bytesWritten?: number; writeQueueSize?: number } | null;
};

/** Limits for responses that clients do not read: the time for each client, and the bytes for all clients together. */
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
    if (!socket || res.writableLength === 0) return;
    const known = this.#responses.get(socket);
    if (known) {
      if (!isCached) known.count();
      return;
    }
    const { clock, memory } = this.#options;
    const response = new UnreadResponse(res, socket, memory, clock.monotonic());
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
  /** Counts what waits: until the end of a turn, Node 26 keeps chunks in the response and not in the socket. */
  readonly #res: Pick<ServerResponse, 'writableLength'>;
  readonly #socket: Written;
  readonly #memory: HeldMemory;
  /** When the client last read a KiB (monotonic). */
  #sinceMs: number;
  #takenBytes: number;

  constructor(res: Pick<ServerResponse, 'writableLength'>, socket: Written, limit: MemoryLimit, sinceMs: number) {
    this.#res = res;
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
    return this.#res.writableLength === 0;
  }

  count(): void {
    this.#memory.hold(this.#res.writableLength);
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
