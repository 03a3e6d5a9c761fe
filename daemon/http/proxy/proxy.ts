/** /v1: all requests in flight. The story of each one is told in exchange.ts. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { LinkedSet } from '../../core/linked-set.js';
import type { Refusal } from '../../core/refusal.js';
import { admit } from './admit.js';
import { REFUSAL_HEADERS } from './client-response.js';
import { Exchange, type ExchangeOptions, type ProxyState } from './exchange.js';
import { recordUnreadable, type UnreadableRequest } from './request-record.js';
import { IdleTimers } from './timeouts.js';

export type ProxyHandler = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean) => void;

export interface Proxy {
  /** Whether a target belongs to the proxy (PROXY_PREFIXES). */
  handles: (target: string) => boolean;
  handle: ProxyHandler;
  /** Refuses the request whose response has not begun. @returns false if the request does not belong to the proxy. */
  refuse(res: ServerResponse, refusal: Refusal): boolean;
  /** Records a refusal that happened before there was a request. */
  recordUnreadable(socket: Socket, refusal: Refusal, unread: UnreadableRequest): void;
  /** Number of requests that have not ended. */
  readonly inFlight: number;
  /** Ends all requests in flight. */
  cutAll(): void;
}

export function createProxy(options: ExchangeOptions): Proxy {
  const inFlight = new LinkedSet<Exchange>();
  const state: ProxyState = { inFlight, idleTimers: new IdleTimers(options.clock) };
  const handles = beginsWith(options.proxyPrefixes);
  const open = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean) => {
    const exchange = new Exchange(options, state, req, res, expectsContinue);
    inFlight.add(exchange);
    return exchange;
  };
  return {
    handles,
    handle(req, res, expectsContinue) {
      void admit(open(req, res, expectsContinue), options);
    },
    refuse(res, refusal) {
      const { req } = res;
      if (!handles(req.url ?? '')) return false;
      // Its turn may not have come yet, if earlier requests were ahead of it.
      const exchange = inFlight.all().find((each) => each.res === res) ?? open(req, res, false);
      exchange.refuse(refusal);
      return true;
    },
    recordUnreadable(socket, refusal, unread) {
      recordUnreadable(options, socket, refusal, unread);
    },
    get inFlight() {
      return inFlight.size;
    },
    cutAll() {
      for (const exchange of inFlight.all()) exchange.drain();
    },
  };
}

/** @returns a test whether a target begins with one of the prefixes, as whole segments of its path. */
function beginsWith(prefixes: readonly string[]): (target: string) => boolean {
  // The prefixes have no characters that have a meaning here, except dots.
  const pattern = new RegExp(`^(?:${prefixes.join('|').replaceAll('.', '\\.')})(?:[/?#]|$)`);
  return (target) => pattern.test(target);
}

/**
 * Whether a target is a plain path: no absolute URL and nothing that a browser would take for one (`//host`), no fragment, which is not
 * for servers, and no `\`, which some read as `/`.
 */
export const isPath = (target: string) => /^\/(?!\/)[^#\\]*$/.test(target);

/**
 * Headers for a refusal that is made before it is known where its request belongs: those of the proxy, unless the request certainly belongs
 * elsewhere.
 *
 * @param target null if it was not read.
 */
export const cacheFields = (
  proxy: Pick<Proxy, 'handles'> | null,
  target: string | null,
): Readonly<Record<string, string>> =>
  proxy === null || (target !== null && isPath(target) && !proxy.handles(target)) ? {} : REFUSAL_HEADERS;
