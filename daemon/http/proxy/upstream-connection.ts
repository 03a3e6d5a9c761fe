/** Connections to the upstream, each of which carries one request at a time, and their number. */
import type { LookupFunction, OnReadOpts, Socket } from 'node:net';
import type { buildConnector as Build, Dispatcher } from 'undici';
import buildConnector from 'undici/lib/core/connect.js';
import Client from 'undici/lib/dispatcher/client.js';
import type { Live } from '../../../config/settings.js';
import type { Clock } from '../../core/ports.js';
import { unavailable } from '../../core/refusal.js';
import { timeoutAfterReads } from '../../core/timing.js';
import { ClientGone } from '../connection-ends.js';
import {
  InterimContinue,
  joinSmallWrites,
  PacedReads,
  type ParsedResponse,
  type ParsingTurn,
  readIntoBlocks,
} from './upstream-socket.js';
import type { Opening, OpenTunnel } from './upstream-tunnel.js';

/** The current settings: SIGHUP may replace them. */
export type LiveTimeouts = Live<'upstreamConnectTimeoutMs'>;

export type Connect = (...args: Parameters<Build.connector>) => Opening;

export const MAX_RESPONSE_HEADER_BYTES = 64 * 1024;
// Without this limit a busy connection would stay open, and not notice that the upstream's name has a new address.
const MAX_LIFETIME_MS = 60_000;

/**
 * How long an idle connection may be reused if the upstream does not announce a limit. Many servers close idle connections after five
 * seconds without notice, perhaps just as the next request arrives; this is shorter.
 */
const DEFAULT_IDLE_MS = 4_000;
// `Keep-Alive: timeout` has whole seconds, which the upstream counts from a slightly different moment.
const IDLE_MARGIN_MS = 1_000;

/** The limits of what waits in the buffers of a socket. */
type QueuingSocket = Socket & Record<'_readableState' | '_writableState', { highWaterMark: number }>;

// Less than undici's own: as much stays in memory for each client that does not read.
const MAX_READ_AHEAD_BYTES = 16 * 1024;

/** A connection to the upstream. After it is lost, the next request opens a new one in its place. */
export class UpstreamConnection {
  readonly #origin: string;
  readonly #connect: Connect;
  readonly #clock: Clock;
  #client: Client | null = null;
  #opening: Opening | null = null;
  #socket: QueuingSocket | null = null;
  #normalQueueBytes = 0;
  #reads: PacedReads | null = null;
  #interim: InterimContinue | null = null;
  readonly #turn: ParsingTurn;
  #openedAtMs = Infinity;
  #idleSinceMs = Infinity;
  #maxIdleMs = DEFAULT_IDLE_MS;
  /** Number of requests on this connection, including the current one. */
  requestCount = 0;
  /** Why the connection was lost; null if it was closed regularly. */
  failure: Error | null = null;

  constructor(origin: string, { connect, clock, turn }: { connect: Connect; clock: Clock; turn: ParsingTurn }) {
    this.#origin = origin;
    this.#connect = connect;
    this.#clock = clock;
    this.#turn = turn;
  }

  #newClient(): Client {
    const client: Client = new Client(this.#origin, {
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: MAX_RESPONSE_HEADER_BYTES,
      connect: (options, callback) => {
        this.#opening = this.#connect(options, (...[error, socket]) => {
          const isAbandoned = client !== this.#client;
          if (!isAbandoned) this.#opening = null;
          if (error) {
            // After some errors, undici's client would let its next request wait forever.
            if (!isAbandoned) this.#client = null;
            callback(error, null);
          } else {
            if (!isAbandoned) this.#opened(socket);
            callback(null, socket);
          }
        });
      },
      // undici's own timeouts are up to half a second late; `TransferTimeouts` replaces them.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    return client;
  }

  #opened(socket: Socket): void {
    const openedAtMs = this.#clock.monotonic();
    this.#openedAtMs = openedAtMs;
    this.#maxIdleMs = DEFAULT_IDLE_MS;
    this.requestCount = 0;
    this.failure = null;
    joinSmallWrites(socket);
    this.#interim = new InterimContinue(socket);
    const reads = new PacedReads(socket, this.#turn);
    this.#reads = reads;
    this.#socket = socket as QueuingSocket;
    this.#normalQueueBytes = this.#socket._writableState.highWaterMark;
    this.#socket._readableState.highWaterMark = MAX_READ_AHEAD_BYTES;
    // Registered before undici's own listener, so that `failure` is set when undici reports the end of the response.
    socket.once('error', (error) => {
      this.failure = error;
    });
    // Before Node 24, a reset is an `end` if part of what had arrived was not read yet, because the client was slow.
    socket.once('end', () => {
      if (socket.remoteAddress === undefined) this.failure = new Error('the connection was reset');
    });
    socket.once('close', () => {
      // Unless the next connection is open already.
      if (this.#openedAtMs === openedAtMs) this.#openedAtMs = Infinity;
      reads.end();
      if (this.#socket !== socket) return;
      // So that what it had read is freed, however long this slot stays unused.
      this.#socket = this.#reads = this.#interim = null;
    });
  }

  /** Whether the connection had carried another request before the current one. */
  get wasReused(): boolean {
    return this.requestCount > 1;
  }

  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    const nowMs = this.#clock.monotonic();
    // undici checks its own idle limit with a timer that is up to half a second late.
    if (nowMs > this.#idleSinceMs + this.#maxIdleMs) this.discard();
    this.#idleSinceMs = Infinity;
    const isOld = nowMs > this.#openedAtMs + MAX_LIFETIME_MS;
    this.#interim?.expectResponse();
    this.#client ??= this.#newClient();
    this.#client.dispatch(isOld ? { ...request, reset: true } : request, handler);
  }

  /**
   * Called before a request is written.
   *
   * @param response gets what undici parses.
   * @param isStreamed whether its body is a stream. Then undici waits until each piece of it was taken: pieces must not queue here, where
   *   nobody joins or counts them.
   */
  begin(response: ParsedResponse, isStreamed: boolean): void {
    this.requestCount += 1;
    this.#reads?.begin(response);
    if (this.#socket) this.#socket._writableState.highWaterMark = isStreamed ? 1 : this.#normalQueueBytes;
  }

  /** Pauses the response, except for what was read already. */
  pause(): void {
    this.#reads?.pause();
  }

  resume(): void {
    this.#reads?.resume();
  }

  /** Called when the current request has ended. */
  markIdle(): void {
    this.#reads?.endResponse();
    this.#idleSinceMs = this.#clock.monotonic();
  }

  /**
   * Reads how long the upstream keeps the connection open (`Keep-Alive: timeout`). @param rawHeaders the response's headers, names and
   * values in turn.
   */
  readKeepAlive(rawHeaders: readonly Buffer[]): void {
    for (let i = 0; i < rawHeaders.length; i += 2) {
      if (rawHeaders[i]?.length !== 'keep-alive'.length) continue;
      if (rawHeaders[i]?.toString('latin1').toLowerCase() !== 'keep-alive') continue;
      const seconds = /(?:^|[,\s])timeout=(\d{1,6})(?:$|[,\s])/i.exec(rawHeaders[i + 1]?.toString('latin1') ?? '')?.[1];
      if (seconds !== undefined) this.#maxIdleMs = Number(seconds) * 1000 - IDLE_MARGIN_MS;
    }
  }

  /**
   * Closes the connection, or cancels opening it; the next request opens a new one. If only the request were aborted, undici would
   * immediately open a new connection for the aborted request.
   */
  discard(): void {
    const client = this.#client;
    this.#client = null;
    this.#openedAtMs = Infinity;
    void client?.destroy();
    this.#opening?.destroy(new Error('the connection is no longer needed'));
    this.#opening = null;
  }

  async close(): Promise<void> {
    await this.#client?.destroy();
  }
}

/**
 * Connects as undici does, but with the current value of UPSTREAM_CONNECT_TIMEOUT. undici would fix the value at start and measure it in
 * half seconds.
 *
 * @param openTunnel null: directly.
 */
export function connectWithin(
  live: LiveTimeouts,
  clock: Clock,
  lookup: LookupFunction,
  openTunnel: OpenTunnel | null,
): Connect {
  const onread = readIntoBlocks();
  const direct = buildConnector({
    timeout: 0,
    allowH2: false,
    lookup,
    onread,
    rejectUnauthorized: true, // Also if NODE_TLS_REJECT_UNAUTHORIZED is 0.
  }) as (...args: Parameters<Build.connector>) => Socket; // undici's types do not state the returned type.
  const connect = openTunnel === null ? direct : connectThrough(openTunnel, direct, onread);
  return (options, callback) => {
    const opening = connect(options, (...result) => {
      cancel();
      callback(...result);
    });
    const cancel = timeoutAfterReads(clock, live.current.upstreamConnectTimeoutMs, () => {
      opening.destroy(new Error('not connected within UPSTREAM_CONNECT_TIMEOUT'));
    });
    return opening;
  };
}

/** Connects through a tunnel, with TLS inside of it if the upstream has TLS: the proxy sees names only. */
function connectThrough(openTunnel: OpenTunnel, startTls: Connect, onread: OnReadOpts): Connect {
  return (options, callback) => {
    const isEncrypted = options.protocol === 'https:';
    const target = { host: options.hostname, port: Number(options.port || (isEncrypted ? 443 : 80)) };
    let opening: Opening = openTunnel(
      target,
      (...[error, socket]) => {
        if (error) callback(error, null);
        else if (isEncrypted) opening = startTls({ ...options, httpSocket: socket }, callback);
        else callback(null, socket);
      },
      // TLS reads from the socket by itself.
      isEncrypted ? undefined : onread,
    );
    return { destroy: (error) => opening.destroy(error) };
  };
}

// ---- how many there may be

/** The connections that one origin may have at the same time. Requests above that number wait in turn, for as long as a connection may take. */
export class ConnectionSlots {
  readonly #count: number;
  readonly #clock: Clock;
  readonly #live: LiveTimeouts;
  #free: number;
  readonly #waiting: Slot[] = [];

  constructor(count: number, clock: Clock, live: LiveTimeouts) {
    this.#count = count;
    this.#free = count;
    this.#clock = clock;
    this.#live = live;
  }

  /** Whether no slot is held. */
  get areAllFree(): boolean {
    return this.#free === this.#count;
  }

  /** Takes a slot, or a place in the queue for one (`Slot.granted`). The caller must see to it that the slot is released. */
  reserve(): Slot {
    const slot = new Slot(this);
    if (this.#free > 0) {
      this.#free -= 1;
    } else {
      this.#waiting.push(slot);
      slot.wait(this.#clock, this.#live.current.upstreamConnectTimeoutMs);
    }
    return slot;
  }

  /** A slot was given back. */
  returned(): void {
    const next = this.#waiting.shift();
    if (next) next.grant();
    else this.#free += 1;
  }

  /** A slot that was not granted yet is no longer wanted. */
  left(slot: Slot): void {
    this.#waiting.splice(this.#waiting.indexOf(slot), 1);
  }
}

/** The right of one request or WebSocket to a connection. */
export class Slot {
  readonly #slots: Pick<ConnectionSlots, 'returned' | 'left'>;
  /**
   * Set if no slot was free: resolves when this one is held. @throws {Refusal} (rejects with) `unavailable` if none became free in time,
   * or with `ClientGone` if it was released before.
   */
  granted: Promise<void> | null = null;
  /** Ends the wait. */
  #settle: ((failure: Error | null) => void) | null = null;
  #isOver = false;

  constructor(slots: Pick<ConnectionSlots, 'returned' | 'left'>) {
    this.#slots = slots;
  }

  wait(clock: Clock, limitMs: number): void {
    this.granted = new Promise((resolve, reject) => {
      const cancel = clock.after(limitMs, () => {
        this.#leave(unavailable());
      });
      this.#settle = (failure) => {
        this.#settle = null;
        cancel();
        if (failure) reject(failure);
        else resolve();
      };
    });
  }

  grant(): void {
    this.#settle?.(null);
  }

  #leave(why: Error): void {
    this.#isOver = true;
    this.#slots.left(this);
    this.#settle?.(why);
  }

  /** Gives the slot back, or leaves the queue. Does nothing the second time. */
  release(): void {
    if (this.#isOver) return;
    if (this.#settle) {
      this.#leave(new ClientGone());
    } else {
      this.#isOver = true;
      this.#slots.returned();
    }
  }
}
