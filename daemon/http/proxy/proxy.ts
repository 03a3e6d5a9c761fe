/**
 * /v1: the request's way.
 *
 *   1–5 admission    shape, rate limits, credential: admit.ts
 *       body         a small one is held, a large one streams: read-body.ts      408 413
 *   6   cache        may it be answered from there? from-cache.ts                504
 *   7   forward      draw one use (spend.ts), swap the key, stream both ways:
 *                    to-upstream.ts                                              413 429 502 503 504
 *   8   afterwards   one RequestEnded value for all who keep a record: record.ts
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { InFlight } from '../../core/in-flight.js';
import type { Refusal } from '../../core/refusal.js';
import { REFUSAL_HEADERS } from './answering.js';
import { Exchange } from './exchange.js';
import type { ExchangeOptions } from './open-exchange.js';
import { recordUnread, type Unread } from './record.js';
import { Watches } from './watch.js';

export type ProxyHandler = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean) => void;

export interface Proxy {
  handle: ProxyHandler;
  /** Refuses the request of a response not begun. @returns false when it is none of the proxy's. */
  refuse(res: ServerResponse, refusal: Refusal): boolean;
  /** Leaves a record of what was refused before there was a request. */
  recordUnread(socket: Socket, refusal: Refusal, unread: Unread): void;
  /** How many requests are not over. */
  readonly inFlight: number;
  /** Ends whatever is in flight. */
  cutAll(): void;
}

export function createProxy(options: ExchangeOptions): Proxy {
  const inFlight = new InFlight<Exchange>();
  const watches = new Watches(options.clock);
  return {
    handle(req, res, expectsContinue) {
      const exchange = new Exchange(options, req, res, expectsContinue, inFlight, watches);
      inFlight.add(exchange);
      exchange.run();
    },
    refuse(res, refusal) {
      const exchange = inFlight.all().find((each) => each.res === res);
      exchange?.refuse(refusal);
      return exchange !== undefined;
    },
    recordUnread(socket, refusal, unread) {
      recordUnread(options, socket, refusal, unread);
    },
    get inFlight() {
      return inFlight.size;
    },
    cutAll() {
      for (const exchange of inFlight.all()) exchange.drain();
    },
  };
}

export const isProxied = (target: string) => /^\/v1(?:[/?#]|$)/.test(target);

/** Neither an absolute URL nor what a browser would take for one (`//host`); no fragment, which is not for us; no `\`, which some read as `/`. */
export const isPath = (target: string) => /^\/(?!\/)[^#\\]*$/.test(target);

/**
 * What every refusal on /v1 carries, for one that is made before anybody knows where its request belongs: none when it certainly
 * belongs elsewhere.
 *
 * @param target null when it was not read.
 */
export const cacheFields = (proxy: object | null, target: string | null): Readonly<Record<string, string>> =>
  proxy === null || (target !== null && isPath(target) && !isProxied(target)) ? {} : REFUSAL_HEADERS;
