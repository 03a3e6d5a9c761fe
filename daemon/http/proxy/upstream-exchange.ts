import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Pass } from '../../core/account.js';
import type { Admission } from '../../core/admission.js';
import type { ResponseCache } from '../../core/cache/response-cache.js';
import type { CacheTransaction } from '../../core/cache-transaction.js';
import type { Outcome } from '../../core/events.js';
import type { Clock } from '../../core/ports.js';
import { Refusal } from '../../core/refusal.js';
import type { RequestBody } from '../body.js';
import type { RequestFields } from '../request-head.js';
import { askingForUsage, mayLackUsage, UsageFilter } from './added-usage.js';
import { isUnsafe } from './cache-request.js';
import { CacheTee } from './cache-tee.js';
import type { ClientResponse } from './client-response.js';
import type { Slot } from './upstream-connection.js';
import type { Forwarding, Receiver } from './forwarder.js';
import { upstreamRequestHeaders } from './headers.js';
import type { RequestRecord } from './request-record.js';
import type { IdleTimers, TransferTimeouts } from './timeouts.js';
import type { Upstream } from './upstreams.js';

const END_OF_EVENT = Buffer.from('\n\n');

/** The request that is sent to the upstream, and the response to its client. */
export interface OpenExchange {
  readonly options: { admission: Admission; cache: ResponseCache | null; clock: Clock; loopMark: string };
  readonly settings: { requestTimeoutMs: number };
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly record: RequestRecord;
  readonly timeouts: TransferTimeouts;
  readonly clientResponse: ClientResponse;
  readonly idleTimers: IdleTimers;
  /** Whether it was refused or has ended, or its client has disconnected. */
  hasEnded(): boolean;
  refuse(error: unknown): void;
  /** Cuts a response that has begun. @param why reason for the client, if this proxy ends it. */
  destroy(outcome: Outcome, why?: Refusal): void;
}

/** A request at the upstream: sends it, and passes the response on to the cache and the client as it arrives. */
export class UpstreamExchange implements Receiver {
  readonly #exchange: OpenExchange;
  readonly #pass: Pass;
  readonly #transaction: CacheTransaction | null;
  #forwarding: Forwarding | null = null;
  /** What the client gets later; null if nothing is held back. */
  #held: (() => void)[] | null = null;
  #cacheTee: CacheTee | null = null;
  /** Removes the usage that the client did not ask for. */
  #usageFilter: UsageFilter | null = null;
  /** The request may have changed the resource, so that stored responses must be invalidated; not yet known whether it did. */
  #invalidatesCache: boolean;

  /** @param transaction may use the response; null if the cache is not involved. */
  constructor(exchange: OpenExchange, pass: Pass, transaction: CacheTransaction | null) {
    this.#exchange = exchange;
    this.#pass = pass;
    this.#transaction = transaction;
    this.#invalidatesCache = exchange.options.cache !== null && isUnsafe(exchange.req);
  }

  /** @param slot held by the caller, and released when the connection is free again. */
  send(upstream: Upstream, slot: Slot, fields: RequestFields, body: RequestBody): void {
    const exchange = this.#exchange;
    const pass = this.#pass;
    const transaction = this.#transaction;
    const { req, record, options } = exchange;
    const nowMs = options.clock.monotonic();
    record.forwardedAtMs = nowMs;
    exchange.timeouts.waitForUpstream(nowMs);
    const asking =
      Buffer.isBuffer(body) && pass.missingUsage === 'inject' && mayLackUsage(req, fields)
        ? askingForUsage(body, fields.forwarded)
        : null;
    const headers = upstreamRequestHeaders(asking ? { ...fields, forwarded: asking.forwarded } : fields, {
      upstreamKey: pass.upstreamKey,
      upstreamAuth: pass.upstreamAuth,
      requestId: record.requestId,
      loopMark: options.loopMark,
    });
    if (transaction?.isResponseNeeded) {
      headers.push(...transaction.conditionalHeaders);
      this.#cacheTee = this.#cacheTeeFor(transaction);
    }
    const target = upstream.pathOf(req.url ?? '/');
    const request = { method: req.method ?? 'GET', target, headers, body: asking?.body ?? body };
    const receiver = this.#cacheTee ?? this;
    if (asking) this.#usageFilter = new UsageFilter(receiver);
    this.#forwarding = upstream.forwarder.forward(request, slot, this.#usageFilter ?? receiver);
    this.#cacheTee?.started(this.#forwarding);
  }

  #cacheTeeFor(transaction: CacheTransaction): CacheTee {
    const { options, idleTimers, settings } = this.#exchange;
    const { requestTimeoutMs } = settings;
    return new CacheTee(this, transaction, this.#pass, { admission: options.admission, idleTimers, requestTimeoutMs });
  }

  // ---- the response

  head(status: number, rawHeaders: readonly Buffer[]): void {
    const { options, req } = this.#exchange;
    if (this.#invalidatesCache) {
      this.#invalidatesCache = false;
      // Before the client learns that the change succeeded.
      if (status < 400) this.#holdUntil(options.cache?.invalidateTarget(this.#pass.projectId, req.url ?? '/'));
    }
    if (this.#held)
      this.#held.push(() => {
        this.#head(status, rawHeaders);
      });
    else this.#head(status, rawHeaders);
  }

  /** Holds the response back until other processes have removed what it made invalid. */
  #holdUntil(invalidated: Promise<void> | undefined): void {
    if (!invalidated) return;
    this.#held = [];
    void invalidated.then(() => {
      const held = this.#held ?? [];
      this.#held = null;
      if (this.#exchange.hasEnded()) return;
      for (const each of held) each();
      this.resume();
    });
  }

  #head(status: number, rawHeaders: readonly Buffer[]): void {
    const { timeouts, record, clientResponse, options } = this.#exchange;
    const nowMs = options.clock.monotonic();
    timeouts.waitForUpstream(nowMs);
    if (this.#cacheTee?.isRevalidated) record.content?.revalidated();
    clientResponse.head(this.#pass, status, rawHeaders, nowMs);
  }

  data(chunk: Buffer): boolean {
    if (this.#held) {
      this.#held.push(() => this.data(chunk));
      return false;
    }
    this.#exchange.timeouts.touch();
    return this.#exchange.clientResponse.data(chunk);
  }

  end(): void {
    if (this.#held)
      this.#held.push(() => {
        this.end();
      });
    else this.#exchange.clientResponse.end();
  }

  fail(refusal: Refusal): void {
    this.#held = null;
    const exchange = this.#exchange;
    if (!exchange.res.headersSent) {
      exchange.refuse(refusal);
      return;
    }
    exchange.record.cause = refusal.cause;
    if (refusal.kind === 'upstream_timeout') exchange.destroy('timeout', refusal);
    else exchange.destroy('truncated'); // As the client would see it without this proxy.
  }

  /** Nothing has happened for too long. */
  timedOut(): void {
    // If the client is the one that stalls (it does not read), an error response would not reach it either.
    if (this.#exchange.clientResponse.isUnread) this.#exchange.destroy('client_closed');
    else (this.#cacheTee ?? this).fail(new Refusal('upstream_timeout', 'upstream timed out'));
  }

  /** Resumes a response that the client could not take for a while. */
  resume(): void {
    this.#forwarding?.resume();
  }

  // ---- end

  /** Aborts the upstream request. */
  abort(): void {
    this.#forwarding?.abort();
  }

  /** The client has disconnected. @returns whether the transfer continues because others need the response. */
  clientLeft(): boolean {
    return this.#cacheTee?.clientLeft() ?? false;
  }

  /** The exchange has ended. */
  close(): void {
    const { options, req, record } = this.#exchange;
    // The client did not get it, but it is recorded. What came before it may be incomplete.
    const usage = this.#usageFilter?.removed;
    if (usage) record.content?.piece(Buffer.concat([END_OF_EVENT, usage]));
    // The upstream may have processed the request although no response arrived.
    if (this.#invalidatesCache) void options.cache?.invalidateTarget(this.#pass.projectId, req.url ?? '/');
  }
}
