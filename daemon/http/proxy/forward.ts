/** The only file that talks to the provider over HTTP. */
import type { Dispatcher } from 'undici';
import errors from 'undici/lib/core/errors.js';
import type { Settings } from '../../../config/settings.js';
import type { Clock } from '../../core/ports.js';
import { Refusal, unavailable } from '../../core/refusal.js';
import { ClientGone, type RequestBody } from '../body.js';
import { type Connect, Connection, connectWithin, LARGEST_RESPONSE_HEADERS, type LiveTimeouts } from './connection.js';

/** Takes an upstream's answer as it arrives. */
export interface Receiver {
  /** @param rawHeaders names and values in turn. */
  head(status: number, rawHeaders: readonly Buffer[]): void;
  /** @returns false to be sent no more until `Forwarding.resume`. */
  data(piece: Buffer): boolean;
  end(): void;
  /** Instead of `end`, whether or not there was a head: the answer is not, or not all, to be had. */
  fail(refusal: Refusal): void;
}

export interface UpstreamRequest {
  method: string;
  /** Path and query, byte for byte as the client sent them. */
  target: string;
  /** Names and values in turn. */
  headers: string[];
  body: RequestBody;
}

export type ForwarderSettings = Pick<Settings, 'upstreamBaseUrl' | 'upstreamConnections'>;

/** A place in the queue for a connection. */
export interface Place {
  /** @throws {Refusal} `unavailable` when none came free in time. */
  reached: Promise<void>;
  /** Leaves the queue: nobody needs the connection any more. */
  leave(): void;
}

const MANY_FIELDS = 100;

/**
 * Of other methods some servers do not read the body. They take it for the next request on the connection, and its answer
 * would go to whoever is next, of another project perhaps: behind such a body the connection is closed.
 */
const BODY_IS_READ: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

export class Forwarder {
  readonly #origin: string;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #live: LiveTimeouts;
  readonly #connect: Connect;
  readonly #connections: Connection[] = [];
  /** Those that carry no request; the last one carried one last. */
  readonly #idle: Connection[] = [];
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor({ upstreamBaseUrl, upstreamConnections }: ForwarderSettings, live: LiveTimeouts, clock: Clock) {
    this.#live = live;
    this.#clock = clock;
    this.#free = upstreamConnections;
    this.#origin = upstreamBaseUrl.origin;
    this.#prefix = upstreamBaseUrl.pathname.replace(/\/+$/, '');
    this.#connect = connectWithin(live, clock);
  }

  /**
   * Reserves a connection; `forward` gives it back, or `release` does if it comes to nothing.
   *
   * @returns a place in the queue when it has to wait.
   */
  reserve(): undefined | Place {
    if (this.#free === 0) return this.#queue();
    this.#free -= 1;
    return undefined;
  }

  #queue(): Place {
    let leave: () => void = () => undefined;
    const reached = new Promise<void>((resolve, reject) => {
      const proceed = () => {
        cancel();
        resolve();
      };
      const quit = (reason: Error) => {
        const at = this.#waiting.indexOf(proceed);
        if (at === -1) return;
        this.#waiting.splice(at, 1);
        cancel();
        reject(reason);
      };
      const cancel = this.#clock.after(this.#live.current.upstreamConnectTimeoutMs, () => {
        quit(unavailable());
      });
      leave = () => {
        quit(new ClientGone());
      };
      this.#waiting.push(proceed);
    });
    return { reached, leave };
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }

  forward(request: UpstreamRequest, receiver: Receiver): Forwarding {
    const connection = this.#idle.pop() ?? this.#open();
    const forwarding = new Forwarding(
      {
        method: request.method,
        path: this.#prefix + request.target,
        headers: request.headers,
        body: request.body as Buffer | null, // Any async iterable will do; undici's types know fewer.
        ...(request.body !== null && !BODY_IS_READ.has(request.method) && { reset: true }),
      },
      connection,
      receiver,
      this,
    );
    forwarding.start();
    return forwarding;
  }

  /** @param isAlive one that was lost is taken last: it would have to be opened anew. */
  giveBack(connection: Connection, isAlive: boolean): void {
    connection.rest();
    if (isAlive) this.#idle.push(connection);
    else this.#idle.unshift(connection);
    this.release();
  }

  #open(): Connection {
    const connection = new Connection(this.#origin, this.#connect, this.#clock);
    this.#connections.push(connection);
    return connection;
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }
}

/**
 * One request at the upstream.
 *
 * It speaks undici's older handler interface: with the newer one undici makes an object of every answer's header fields and
 * trailers, which nobody here asks for and which loses their order and repetition.
 */
export class Forwarding implements Dispatcher.DispatchHandler {
  readonly #request: Dispatcher.DispatchOptions;
  readonly #connection: Connection;
  readonly #receiver: Receiver;
  readonly #forwarder: Pick<Forwarder, 'giveBack'>;
  #abort: ((reason: Error) => void) | null = null;
  #resume: (() => void) | null = null;
  #isAborted = false;
  #isAnswered = false;
  #isEnded = false;
  #isOver = false;
  #isRepeated = false;

  constructor(
    request: Dispatcher.DispatchOptions,
    connection: Connection,
    receiver: Receiver,
    forwarder: Pick<Forwarder, 'giveBack'>,
  ) {
    this.#request = request;
    this.#connection = connection;
    this.#receiver = receiver;
    this.#forwarder = forwarder;
  }

  start(): void {
    this.#connection.dispatch(this.#request, this);
  }

  /** Ends the upstream request at once; the receiver hears no more of it. */
  abort(): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    if (this.#isOver) return; // The connection carries another one.
    this.#abort?.(new Error('aborted'));
    this.#connection.abandon();
  }

  resume(): void {
    if (!this.#isAborted) this.#resume?.();
  }

  // ---- undici's side

  onConnect(abort: (reason?: Error) => void): void {
    this.#abort = abort;
    this.#connection.carries += 1;
    // It was called off while it waited for its connection: nothing of it has been sent, and nothing will be.
    if (this.#isAborted) abort(new Error('aborted'));
  }

  /** At the first byte. */
  onResponseStarted(): void {
    this.#isAnswered = true;
  }

  /** @returns false, here and in `onData`, to be sent no more until `resume`. */
  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void): boolean {
    if (this.#isAborted) return true;
    if (status < 100 || status === 101) {
      this.#giveUp(malformed()); // Or a switch to another protocol, which nobody asked for.
      return true;
    }
    if (status < 200) return true; // The final answer follows.
    this.#resume = resume;
    this.#connection.heed(rawHeaders);
    if (status === 401) {
      // To our key. The upstream's text can quote the key, so not a byte of it goes on.
      this.#giveUp(new Refusal('upstream_key_rejected', "upstream rejected the project's key"));
      return true;
    }
    try {
      if (areTooLarge(rawHeaders)) throw new Error('more than 64 KiB of headers');
      this.#receiver.head(status, rawHeaders);
      if (hasNoBody(status)) this.#end();
    } catch (error) {
      this.#giveUp(malformed(error));
    }
    return true;
  }

  onData(piece: Buffer): boolean {
    return this.#isAborted || this.#receiver.data(piece);
  }

  onComplete(): void {
    this.#over(true);
    if (this.#isAborted || this.#isEnded) return;
    // undici takes a reset for the end of an answer that ends with its connection.
    const { failure } = this.#connection;
    if (failure) this.#receiver.fail(refusalOf(failure));
    else this.#end();
  }

  onError(error: Error): void {
    if (this.#mayRepeat()) {
      this.#isRepeated = true;
      // Not before undici is done with the connection that was lost.
      queueMicrotask(() => {
        if (this.#isAborted) this.#over(false);
        else this.start();
      });
      return;
    }
    this.#over(false);
    if (this.#isAborted || this.#isEnded) return;
    const refusal = refusalOf(error);
    // It has begun to go out, and a connection that is lost does not tell how far it got.
    const isSent = refusal.kind === 'upstream_unreachable' && this.#abort !== null;
    this.#receiver.fail(isSent && !this.#isAnswered ? closedUnanswered(error) : refusal);
  }

  /**
   * Whether the upstream closed an idle connection just as the request went out on it, and may be asked again: once, on
   * a new connection, and only for what changes nothing if it was heard the first time too.
   */
  #mayRepeat(): boolean {
    const { method, body } = this.#request;
    if (this.#isAborted || this.#isAnswered || this.#isRepeated || !this.#connection.wasReused) return false;
    return (method === 'GET' || method === 'HEAD') && (!body || Buffer.isBuffer(body));
  }

  #over(isAlive: boolean): void {
    this.#isOver = true;
    this.#forwarder.giveBack(this.#connection, isAlive);
  }

  #end(): void {
    this.#isEnded = true;
    this.#receiver.end();
  }

  #giveUp(refusal: Refusal): void {
    this.#receiver.fail(refusal);
    this.abort();
  }
}

// Whatever Content-Length says, as for 304 it may; undici would wait for that body, and miss it.
const hasNoBody = (status: number) => status === 204 || status === 304;

// undici counts the bytes of names and values only; of many small fields the separators are as much.
function areTooLarge(rawHeaders: readonly Buffer[]): boolean {
  if (rawHeaders.length < 2 * MANY_FIELDS) return false;
  const bytes = rawHeaders.reduce((sum, { length }) => sum + length + 2, 0); // ": " or CRLF
  return bytes > LARGEST_RESPONSE_HEADERS;
}

const malformed = (cause?: unknown) => new Refusal('upstream_malformed', 'upstream answered malformed', { cause });

const closedUnanswered = (cause: unknown) =>
  new Refusal(
    'upstream_unreachable',
    'the provider closed the connection before it answered; the request may have been received',
    { cause },
  );

/** What undici's error is to the client. Upstream text stays in the cause. */
function refusalOf(error: Error): Refusal {
  if (error instanceof Refusal) return error; // From the request's body: too large, too slow.
  const cause = { cause: error };
  if (error instanceof errors.InvalidArgumentError) {
    return new Refusal('malformed_request', 'a header field or the target cannot be forwarded', cause);
  }
  if (
    error instanceof errors.HTTPParserError ||
    error instanceof errors.HeadersOverflowError ||
    error instanceof errors.ResponseContentLengthMismatchError ||
    // Its only sign of an unasked 101 or 100.
    (error instanceof errors.SocketError && (error.message === 'bad upgrade' || error.message === 'bad response'))
  ) {
    return malformed(error);
  }
  return new Refusal('upstream_unreachable', 'upstream unreachable', cause);
}
