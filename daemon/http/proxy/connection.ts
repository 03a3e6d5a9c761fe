/** Connections to the upstream, one request on each at a time. */
import type { Socket } from 'node:net';
import type { buildConnector as Build, Dispatcher } from 'undici';
import buildConnector from 'undici/lib/core/connect.js';
import Client from 'undici/lib/dispatcher/client.js';
import type { Live } from '../../../config/settings.js';
import type { Clock } from '../../core/ports.js';
import { deadline } from './deadline.js';
import { rememberedNames } from './names.js';

/** Those in force: SIGHUP may put others in their place. */
export type LiveTimeouts = Live<'upstreamConnectTimeoutMs'>;

export type Connect = (...args: Parameters<Build.connector>) => Socket;

export const LARGEST_RESPONSE_HEADERS = 64 * 1024;
// A busy connection would never be closed, and never notice that the upstream's name means another address now.
const LONGEST_LIFE_MS = 60_000;

/**
 * How long a connection may carry nothing and still be used again, where the upstream does not say: less than the five
 * seconds after which many servers close it without notice, just as the next request arrives.
 */
const LONGEST_IDLE_MS = 4_000;
// `Keep-Alive: timeout` is in whole seconds, counted from another moment than ours.
const IDLE_MARGIN_MS = 1_000;

/** A connection, and the next one once it is lost. */
export class Connection {
  readonly #origin: string;
  readonly #connect: Connect;
  readonly #clock: Clock;
  #client: Client | null = null;
  /** The one being opened. */
  #opening: Socket | null = null;
  #openedAtMs = Infinity;
  #idleSinceMs = Infinity;
  #longestIdleMs = LONGEST_IDLE_MS;
  /** How many requests it has been given, the current one included. */
  carries = 0;
  /** Why it ended, if not in an orderly way. */
  failure: Error | null = null;

  constructor(origin: string, connect: Connect, clock: Clock) {
    this.#origin = origin;
    this.#connect = connect;
    this.#clock = clock;
  }

  #newClient(): Client {
    const client: Client = new Client(this.#origin, {
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: LARGEST_RESPONSE_HEADERS,
      connect: (options, callback) => {
        this.#opening = this.#connect(options, (...[error, socket]) => {
          const isAbandoned = client !== this.#client;
          if (!isAbandoned) this.#opening = null;
          if (error) {
            // After some errors undici's client would let its next request wait for ever.
            if (!isAbandoned) this.#client = null;
            callback(error, null);
          } else {
            if (!isAbandoned) this.#opened(socket);
            callback(null, socket);
          }
        });
      },
      // Its own are up to half a second late; the proxy watches the time itself.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    return client;
  }

  #opened(socket: Socket): void {
    const openedAtMs = this.#clock.monotonic();
    this.#openedAtMs = openedAtMs;
    this.#longestIdleMs = LONGEST_IDLE_MS;
    this.carries = 0;
    this.failure = null;
    // Before undici's own listener, so that it is known by the time undici says that the answer is over.
    socket.once('error', (error) => {
      this.failure = error;
    });
    socket.once('close', () => {
      // Unless the next one is open already.
      if (this.#openedAtMs === openedAtMs) this.#openedAtMs = Infinity;
    });
  }

  /** Whether it had carried another request before the current one. */
  get wasReused(): boolean {
    return this.carries > 1;
  }

  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    const nowMs = this.#clock.monotonic();
    // undici's own limit is watched by a timer, which is up to half a second late.
    if (nowMs > this.#idleSinceMs + this.#longestIdleMs) this.abandon();
    this.#idleSinceMs = Infinity;
    const isOld = nowMs > this.#openedAtMs + LONGEST_LIFE_MS;
    this.#client ??= this.#newClient();
    this.#client.dispatch(isOld ? { ...request, reset: true } : request, handler);
  }

  /** The request it carried is over. */
  rest(): void {
    this.#idleSinceMs = this.#clock.monotonic();
  }

  /** What the upstream says of how long it waits for the next request. @param rawHeaders of its answer, names and values in turn. */
  heed(rawHeaders: readonly Buffer[]): void {
    for (let i = 0; i < rawHeaders.length; i += 2) {
      if (rawHeaders[i]?.length !== 'keep-alive'.length) continue;
      if (rawHeaders[i]?.toString('latin1').toLowerCase() !== 'keep-alive') continue;
      const seconds = /(?:^|[,\s])timeout=(\d{1,6})(?:$|[,\s])/i.exec(rawHeaders[i + 1]?.toString('latin1') ?? '')?.[1];
      if (seconds !== undefined) this.#longestIdleMs = Number(seconds) * 1000 - IDLE_MARGIN_MS;
    }
  }

  /**
   * Ends it, open or being opened: the next request has a new one made. Whoever only aborts a request has undici make a new
   * one at once, for the request that was aborted.
   */
  abandon(): void {
    const client = this.#client;
    this.#client = null;
    this.#openedAtMs = Infinity;
    void client?.destroy();
    this.#opening?.destroy(new Error('nobody waits for it any more'));
    this.#opening = null;
  }

  async close(): Promise<void> {
    await this.#client?.destroy();
  }
}

/** Connects as undici does, in the time that is given now, which undici would fix once and measure in half seconds. */
export function connectWithin(live: LiveTimeouts, clock: Clock): Connect {
  const connect = buildConnector({
    timeout: 0,
    allowH2: false,
    lookup: rememberedNames(clock),
    rejectUnauthorized: true, // Whatever NODE_TLS_REJECT_UNAUTHORIZED says.
  }) as Connect; // undici's types do not say what it returns.
  return (options, callback) => {
    const socket = connect(options, (...result) => {
      cancel();
      callback(...result);
    });
    const cancel = deadline(clock, live.current.upstreamConnectTimeoutMs, () => {
      socket.destroy(new Error('no connection within UPSTREAM_CONNECT_TIMEOUT'));
    });
    return socket;
  };
}
