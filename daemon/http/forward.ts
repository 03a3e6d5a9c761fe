/** The only file that talks to the provider over HTTP. */
import { buildConnector, type Dispatcher, errors, Pool } from 'undici';
import type { Settings } from '../../config/settings.js';
import type { Clock } from '../core/ports.js';
import { Refusal, unavailable } from '../core/refusal.js';
import { ClientGone, type RequestBody } from './body.js';

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

/** Those in force: SIGHUP may put others in their place. */
export interface LiveTimeouts {
  readonly current: Pick<Settings, 'upstreamConnectTimeoutMs'>;
}

/** A place in the queue for a connection. */
export interface Place {
  /** @throws {Refusal} `unavailable` when none came free in time. */
  reached: Promise<void>;
  /** Leaves the queue: nobody needs the connection any more. */
  leave(): void;
}

const LARGEST_RESPONSE_HEADERS = 64 * 1024;

export class Forwarder {
  readonly #pool: Pool;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #live: LiveTimeouts;
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor({ upstreamBaseUrl, upstreamConnections }: ForwarderSettings, live: LiveTimeouts, clock: Clock) {
    this.#live = live;
    this.#clock = clock;
    this.#free = upstreamConnections;
    this.#prefix = upstreamBaseUrl.pathname.replace(/\/+$/, '');
    this.#pool = new Pool(upstreamBaseUrl.origin, {
      connections: upstreamConnections,
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: LARGEST_RESPONSE_HEADERS,
      connect: connectWithin(live),
      // Its own are up to half a second late; the proxy watches the time itself.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /**
   * Reserves a connection; `forward` gives it back, or `release` does if it comes to nothing. The pool
   * itself would let a request wait for ever.
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
    const forwarding = new Forwarding(receiver, () => {
      this.release();
    });
    this.#pool.dispatch(
      {
        method: request.method,
        path: this.#prefix + request.target,
        headers: request.headers,
        body: request.body as Buffer | null, // Any async iterable will do; undici's types know fewer.
      },
      forwarding,
    );
    return forwarding;
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }
}

/** undici fixes the time when it builds a connector, which also remembers TLS sessions: a new one only for a new time. */
function connectWithin(live: LiveTimeouts): buildConnector.connector {
  let timeoutMs = live.current.upstreamConnectTimeoutMs;
  const build = () => buildConnector({ timeout: timeoutMs, allowH2: false });
  let connector = build();
  return (options, callback) => {
    if (timeoutMs !== live.current.upstreamConnectTimeoutMs) {
      timeoutMs = live.current.upstreamConnectTimeoutMs;
      connector = build();
    }
    connector(options, callback);
  };
}

/** One request at the upstream. */
export class Forwarding implements Dispatcher.DispatchHandler {
  #controller: Dispatcher.DispatchController | null = null;
  #isAborted = false;

  constructor(
    private readonly receiver: Receiver,
    private readonly onOver: () => void,
  ) {}

  /** Ends the upstream request at once; the receiver hears no more of it. */
  abort(): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#controller?.abort(new Error('aborted'));
  }

  resume(): void {
    if (!this.#isAborted) this.#controller?.resume();
  }

  // ---- undici's side

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // It was called off while it waited for its connection: nothing of it has been sent, and nothing will be.
    if (this.#isAborted) controller.abort(new Error('aborted'));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (this.#isAborted || status < 200) return; // 1xx: the final answer follows.
    if (status === 401) {
      // To our key. The upstream's text can quote the key, so not a byte of it goes on.
      this.#giveUp(new Refusal('upstream_key_rejected', "upstream rejected the project's key"));
      return;
    }
    try {
      this.receiver.head(status, controller.rawHeaders as Buffer[]);
    } catch (error) {
      this.#giveUp(new Refusal('upstream_malformed', 'upstream answered malformed', { cause: error }));
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (!this.#isAborted && !this.receiver.data(piece)) controller.pause();
  }

  onResponseEnd(): void {
    this.onOver();
    if (!this.#isAborted) this.receiver.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.onOver();
    if (!this.#isAborted) this.receiver.fail(refusalOf(error));
  }

  #giveUp(refusal: Refusal): void {
    this.receiver.fail(refusal);
    this.abort();
  }
}

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
    (error instanceof errors.SocketError && error.message === 'bad upgrade')
  ) {
    return new Refusal('upstream_malformed', 'upstream answered malformed', cause);
  }
  return new Refusal('upstream_unreachable', 'upstream unreachable', cause);
}
