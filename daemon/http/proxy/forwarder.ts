/** HTTP client for the provider. No other file sends HTTP requests to it. */
import type { LookupFunction } from 'node:net';
import type { Dispatcher } from 'undici';
import errors from 'undici/lib/core/errors.js';
import type { Settings } from '../../../config/settings.js';
import type { Clock } from '../../core/ports.js';
import type { ParsedResponse, ParsingTurn } from './upstream-socket.js';
import { Refusal } from '../../core/refusal.js';
import { GatheredBytes } from '../../core/gathered-bytes.js';
import type { RequestBody } from './body.js';
import {
  type Connect,
  ConnectionSlots,
  connectWithin,
  type LiveTimeouts,
  MAX_RESPONSE_HEADER_BYTES,
  type Slot,
  UpstreamConnection,
} from './upstream-connection.js';
import type { OpenTunnel } from './upstream-tunnel.js';

/** Receives an upstream response as it arrives. */
export interface Receiver {
  /** @param rawHeaders names and values in turn. */
  head(status: number, rawHeaders: readonly Buffer[]): void;
  /** @returns false to pause until `Forwarding.resume` is called; the rest of what was read from the connection still arrives. */
  data(chunk: Buffer): boolean;
  end(): void;
  /** Called instead of `end`, before or after `head`: the response is missing or incomplete. */
  fail(refusal: Refusal): void;
}

export interface UpstreamRequest {
  method: string;
  /** Path and query for the upstream. */
  target: string;
  /** Names and values in turn. */
  headers: string[];
  body: RequestBody;
}

export interface ForwarderOptions extends Pick<Settings, 'upstreamConnections'> {
  live: LiveTimeouts;
  clock: Clock;
  turn: ParsingTurn;
  /** Resolves the upstream's name. */
  lookup: LookupFunction;
  /** Null: the upstream is connected to directly. */
  openTunnel: OpenTunnel | null;
}

const HEADERS_TO_COUNT = 100;
// Joining larger pieces would cost more than it saves.
const LARGE_PIECE_BYTES = 4 * 1024;

/**
 * Some servers do not read the body of other methods. They take it for the next request on the connection, and the response to that would
 * go to the next request, perhaps of another project. So the connection is closed after such a body.
 */
const BODY_IS_READ: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

/** Forwards to one origin. */
export class Forwarder {
  readonly #origin: string;
  readonly #clock: Clock;
  readonly #turn: ParsingTurn;
  readonly #connect: Connect;
  readonly #connections: UpstreamConnection[] = [];
  /** Connections without a request, the most recently used one last. */
  readonly #idle: UpstreamConnection[] = [];
  readonly #slots: ConnectionSlots;

  constructor(origin: string, { upstreamConnections, live, clock, lookup, openTunnel, turn }: ForwarderOptions) {
    this.#turn = turn;
    this.#clock = clock;
    this.#slots = new ConnectionSlots(upstreamConnections, clock, live);
    this.#origin = origin;
    this.#connect = connectWithin(live, clock, lookup, openTunnel);
  }

  /** Reserves a connection for `forward`, or for a WebSocket. */
  reserve(): Slot {
    return this.#slots.reserve();
  }

  /** @param slot held by the caller. It is released here once the connection is free again. */
  forward(request: UpstreamRequest, slot: Slot, receiver: Receiver): Forwarding {
    const connection = this.#idle.pop() ?? this.#open();
    const forwarding = new Forwarding(
      {
        method: request.method,
        path: request.target,
        headers: request.headers,
        body: request.body as Buffer | null, // undici accepts any async iterable; its types do not say so.
        ...(request.body !== null && !BODY_IS_READ.has(request.method) && { reset: true }),
      },
      connection,
      receiver,
      (isAlive) => {
        this.#returnConnection(connection, isAlive);
        slot.release();
      },
    );
    forwarding.start();
    return forwarding;
  }

  /** @param isAlive a lost connection is used last, since it would have to be opened again. */
  #returnConnection(connection: UpstreamConnection, isAlive: boolean): void {
    connection.markIdle();
    if (isAlive) this.#idle.push(connection);
    else this.#idle.unshift(connection);
  }

  #open(): UpstreamConnection {
    const connection = new UpstreamConnection(this.#origin, {
      connect: this.#connect,
      clock: this.#clock,
      turn: this.#turn,
    });
    this.#connections.push(connection);
    return connection;
  }

  /** Whether no connection is reserved or in use. */
  get isIdle(): boolean {
    return this.#slots.areAllFree;
  }

  /** Closes all connections. Call only while it is idle; later requests open new ones. */
  discardConnections(): void {
    for (const connection of this.#connections) connection.discard();
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }
}

/**
 * One request to the upstream.
 *
 * Implements undici's older handler interface. With the newer one, undici builds an object from the headers and trailers of each
 * response; it is not needed here, and loses the order and repetition of headers.
 */
export class Forwarding implements Dispatcher.DispatchHandler, ParsedResponse {
  readonly #request: Dispatcher.DispatchOptions;
  readonly #connection: UpstreamConnection;
  readonly #receiver: Receiver;
  readonly #returnToForwarder: (isAlive: boolean) => void;
  #abort: ((reason: Error) => void) | null = null;
  #isAborted = false;
  #hasResponse = false;
  #isEnded = false;
  #isConnectionReturned = false;
  #isRetried = false;
  /** What was parsed of the body since the last read, in whatever chunks it was sent. */
  readonly #parsed = new GatheredBytes();
  /** How many pieces of the body, and of responses before the final one, were parsed. */
  #pieces = 0;

  constructor(
    request: Dispatcher.DispatchOptions,
    connection: UpstreamConnection,
    receiver: Receiver,
    returnToForwarder: (isAlive: boolean) => void,
  ) {
    this.#request = request;
    this.#connection = connection;
    this.#receiver = receiver;
    this.#returnToForwarder = returnToForwarder;
  }

  /** Whether anything of the request may have been sent. */
  get mayBeSent(): boolean {
    return this.#abort !== null;
  }

  start(): void {
    this.#connection.dispatch(this.#request, this);
  }

  /** Aborts the upstream request immediately; the receiver gets no further calls. */
  abort(): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    if (this.#isConnectionReturned) return; // The connection already serves another request.
    this.#abort?.(new Error('aborted'));
    this.#connection.discard();
  }

  resume(): void {
    if (!this.#isAborted && !this.#isConnectionReturned) this.#connection.resume();
  }

  // ---- called by undici

  onConnect(abort: (reason?: Error) => void): void {
    this.#abort = abort;
    const { body } = this.#request;
    this.#connection.begin(this, body !== null && !Buffer.isBuffer(body));
    // Aborted while it waited for its connection: nothing of it was sent, and nothing will be.
    if (this.#isAborted) abort(new Error('aborted'));
  }

  /** At the first byte of the response. */
  onResponseStarted(): void {
    this.#hasResponse = true;
  }

  /** @returns true, here and in `onData`: false would pause undici's parser, see `PausableReads`. */
  onHeaders(status: number, rawHeaders: Buffer[]): boolean {
    if (this.#isAborted) return true;
    if (status < 100 || status === 101) {
      this.#failAndAbort(malformed()); // 101 switches to another protocol, which was not requested.
      return true;
    }
    this.#pieces += status < 200 ? 1 + rawHeaders.length : 1;
    if (status < 200) return true; // The final response follows.
    this.#connection.readKeepAlive(rawHeaders);
    if (status === 401) {
      // The project's key was rejected. The upstream's text may quote the key, so none of it is forwarded.
      this.#failAndAbort(new Refusal('upstream_key_rejected', "upstream rejected the project's key"));
      return true;
    }
    try {
      if (exceedsHeaderLimit(rawHeaders)) throw new Error('more than 64 KiB of headers');
      this.#receiver.head(status, rawHeaders);
      if (hasNoBody(status)) this.#end();
    } catch (error) {
      this.#failAndAbort(malformed(error));
    }
    return true;
  }

  onData(chunk: Buffer): boolean {
    this.#pieces += 1;
    if (chunk.length < LARGE_PIECE_BYTES) {
      this.#parsed.add(chunk);
    } else {
      this.handOver();
      this.#receive(chunk);
    }
    return true;
  }

  #receive(bytes: Buffer): void {
    if (!this.#isAborted && !this.#isEnded && !this.#receiver.data(bytes)) this.#connection.pause();
  }

  // ---- called by the connection

  parsedPieces(): number {
    const pieces = this.#pieces;
    this.#pieces = 0;
    return pieces;
  }

  handOver(): void {
    if (this.#parsed.length === 0) return;
    this.#receive(this.#parsed.take());
  }

  // ---- called by undici

  onComplete(): void {
    this.handOver();
    this.#returnConnection(true);
    if (this.#isAborted || this.#isEnded) return;
    // For a response that ends with its connection, undici takes a reset for the regular end.
    const { failure } = this.#connection;
    if (failure) this.#receiver.fail(refusalOf(failure));
    else this.#end();
  }

  onError(error: Error): void {
    this.handOver();
    if (this.#mayRetry()) {
      this.#isRetried = true;
      // Only after undici has finished with the lost connection.
      queueMicrotask(() => {
        if (this.#isAborted) this.#returnConnection(false);
        else this.start();
      });
      return;
    }
    this.#returnConnection(false);
    if (this.#isAborted || this.#isEnded) return;
    const refusal = refusalOf(error);
    // Part of the request may have been sent; a lost connection does not show how much.
    const isSent = refusal.kind === 'upstream_unreachable' && this.#abort !== null;
    this.#receiver.fail(isSent ? closedAfter(error, this.#hasResponse) : refusal);
  }

  /**
   * Whether the request may be sent again because the upstream closed an idle connection just as the request was sent on it: once, on a
   * new connection, and only for a safe method, in case the upstream processed it the first time.
   */
  #mayRetry(): boolean {
    const { method, body } = this.#request;
    if (this.#isAborted || this.#hasResponse || this.#isRetried || !this.#connection.wasReused) return false;
    return (method === 'GET' || method === 'HEAD') && (!body || Buffer.isBuffer(body));
  }

  #returnConnection(isAlive: boolean): void {
    this.#isConnectionReturned = true;
    this.#returnToForwarder(isAlive);
  }

  #end(): void {
    this.#isEnded = true;
    this.#receiver.end();
  }

  #failAndAbort(refusal: Refusal): void {
    this.#receiver.fail(refusal);
    this.abort();
  }
}

// 204 and 304 have no body even if they have a `Content-Length`, as a 304 may. undici would wait for that body.
const hasNoBody = (status: number) => status === 204 || status === 304;

// undici counts only the bytes of names and values; with many small headers the separators take as much.
function exceedsHeaderLimit(rawHeaders: readonly Buffer[]): boolean {
  if (rawHeaders.length < 2 * HEADERS_TO_COUNT) return false;
  const bytes = rawHeaders.reduce((sum, { length }) => sum + length + 2, 0); // ": " or CRLF
  return bytes > MAX_RESPONSE_HEADER_BYTES;
}

export const malformed = (cause?: unknown) =>
  new Refusal('upstream_malformed', 'upstream answered malformed', { cause, mayBeBilled: true });

/** @param hasBegun whether something of the response came before, such as a 103. */
const closedAfter = (cause: unknown, hasBegun: boolean) =>
  new Refusal(
    'upstream_unreachable',
    hasBegun
      ? 'upstream unreachable'
      : 'the provider closed the connection before it responded; the request may have been received',
    { cause, mayBeBilled: true },
  );

/** Converts an error of undici for the client. Text of the upstream stays in the cause. */
function refusalOf(error: Error): Refusal {
  if (error instanceof Refusal) return error; // Thrown by the request's body: too large or too slow.
  const cause = { cause: error };
  if (error instanceof errors.InvalidArgumentError) {
    return new Refusal('malformed_request', 'the URL or a header contains characters that cannot be forwarded', cause);
  }
  if (
    error instanceof errors.HTTPParserError ||
    error instanceof errors.HeadersOverflowError ||
    error instanceof errors.ResponseContentLengthMismatchError ||
    // undici reports an unrequested 101, or a 100 after blank lines, only in this way.
    (error instanceof errors.SocketError && (error.message === 'bad upgrade' || error.message === 'bad response'))
  ) {
    return malformed(error);
  }
  return new Refusal('upstream_unreachable', 'upstream unreachable', cause);
}
