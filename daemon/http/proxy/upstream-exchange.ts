import type { IncomingMessage } from 'node:http';
import type { Pass } from '../../core/account.js';
import type { Admission } from '../../core/admission.js';
import type { ResponseCache } from '../../core/cache/response-cache.js';
import type { CacheTransaction } from '../../core/cache-transaction.js';
import type { Refusal } from '../../core/refusal.js';
import type { RequestBody } from './body.js';
import type { RequestFields } from '../request-head.js';
import { askingForUsage, mayLackUsage, UsageFilter } from './added-usage.js';
import { isUnsafe } from './cache-request.js';
import { CacheTee } from './cache-tee.js';
import { type Forwarding, malformed, type Receiver } from './forwarder.js';
import { upstreamRequestHeaders } from './headers.js';
import type { RequestRecord } from './request-record.js';
import type { IdleTimers } from './timeouts.js';
import type { Slot } from './upstream-connection.js';
import type { Upstream } from './upstreams.js';

const END_OF_EVENT = Buffer.from('\n\n');

/** The request to forward. */
export interface UpstreamExchangeOptions {
  options: { admission: Admission; cache: ResponseCache | null; loopMark: string };
  idleTimers: IdleTimers;
  settings: { requestTimeoutMs: number };
  req: IncomingMessage;
  record: RequestRecord;
  pass: Pass;
  upstream: Upstream;
  /** May use the response; null if the cache is not involved. */
  transaction: CacheTransaction | null;
}

/**
 * A request at the upstream. It holds its place among the connections to the upstream from the beginning, and is sent once. The response passes,
 * where there is a reason for it, the filter of the usage that the client did not ask for, the cache, and the invalidation of stored responses,
 * on its way to the client.
 */
export class UpstreamExchange {
  readonly #request: UpstreamExchangeOptions;
  /** Its connection, or its place in the queue for one. */
  readonly slot: Slot;
  /** The client's end of the way of the response. */
  #client: Receiver;
  #forwarding: Forwarding | null = null;
  #cacheTee: CacheTee | null = null;
  #usageFilter: UsageFilter | null = null;
  #invalidation: Invalidation | null = null;

  /** @param client gets the response. */
  constructor(request: UpstreamExchangeOptions, client: Receiver) {
    this.#request = request;
    this.#client = client;
    this.slot = request.upstream.forwarder.reserve();
  }

  /** Call it once the slot is held. */
  send(fields: RequestFields, body: RequestBody): void {
    const { options, req, record, pass, upstream, transaction } = this.#request;
    const { missingUsage } = pass;
    const mayBeChanged = missingUsage === 'inject' && Buffer.isBuffer(body) && mayLackUsage(missingUsage, req, fields);
    const asking = mayBeChanged ? askingForUsage(body, fields.forwarded) : null;
    const headers = upstreamRequestHeaders(asking ? { ...fields, forwarded: asking.forwarded } : fields, {
      upstreamKey: pass.upstreamKey,
      upstreamAuth: pass.upstreamAuth,
      requestId: record.requestId,
      loopMark: options.loopMark,
    });
    if (options.cache !== null && isUnsafe(req))
      this.#client = this.#invalidation = this.#invalidationBy(options.cache);
    let receiver = this.#client;
    if (transaction?.isResponseNeeded) {
      headers.push(...transaction.conditionalHeaders);
      receiver = this.#cacheTee = this.#cacheTeeFor(transaction);
    }
    if (asking) receiver = this.#usageFilter = new UsageFilter(receiver);
    const target = upstream.pathOf(req.url ?? '/');
    const request = { method: req.method ?? 'GET', target, headers, body: asking?.body ?? body };
    this.#forwarding = upstream.forwarder.forward(request, this.slot, receiver);
    this.#cacheTee?.started(this.#forwarding);
  }

  #cacheTeeFor(transaction: CacheTransaction): CacheTee {
    const { options, idleTimers, settings, record, pass } = this.#request;
    return new CacheTee(this.#client, transaction, pass, {
      admission: options.admission,
      idleTimers,
      requestTimeoutMs: settings.requestTimeoutMs,
      record,
    });
  }

  #invalidationBy(cache: ResponseCache): Invalidation {
    const { pass, req } = this.#request;
    return new Invalidation(this.#client, {
      invalidate: () => cache.invalidateTarget(pass.projectId, req.url ?? '/'),
      resume: () => {
        this.resume();
      },
    });
  }

  /** Whether the provider may have the request, as far as its body was taken. */
  get mayBeSent(): boolean {
    return this.#forwarding?.mayBeSent ?? false;
  }

  /** Resumes a response that the client could not take for a while. */
  resume(): void {
    this.#forwarding?.resume();
  }

  /** The response takes too long: its receivers get this in place of the rest. */
  fail(refusal: Refusal): void {
    (this.#cacheTee ?? this.#client).fail(refusal);
  }

  /** Aborts the request, or gives up its place. The client gets nothing more. */
  abort(): void {
    this.#invalidation?.drop();
    if (this.#forwarding) this.#forwarding.abort();
    else this.slot.release();
  }

  /** The client has disconnected. @returns whether the transfer continues because others need the response. */
  clientLeft(): boolean {
    this.#invalidation?.drop();
    return this.#cacheTee?.clientLeft() ?? false;
  }

  /** The exchange with the client has ended. */
  close(): void {
    const { record } = this.#request;
    if (!this.#forwarding) this.slot.release();
    // The client did not get it, but it is recorded. What came before it may be incomplete.
    const usage = this.#usageFilter?.removed;
    if (usage) record.content?.piece(Buffer.concat([END_OF_EVENT, usage]));
    this.#invalidation?.close();
  }
}

interface InvalidationOptions {
  /** Removes the stored responses of the request's target. @returns a promise if other processes have to do so too. */
  invalidate: () => Promise<void> | undefined;
  /** Resumes the response after it was held back. */
  resume: () => void;
}

/**
 * Passes on the response to a request that may have changed its resource, but not before all that it made invalid was removed from the cache: from
 * then on the client may rely on the change.
 */
class Invalidation implements Receiver {
  readonly #client: Receiver;
  readonly #options: InvalidationOptions;
  /** Whether it is not known yet whether the resource was changed. */
  #isDue = true;
  /** What the client gets later; null if nothing is held back. */
  #held: (() => void)[] | null = null;

  constructor(client: Receiver, options: InvalidationOptions) {
    this.#client = client;
    this.#options = options;
  }

  head(status: number, rawHeaders: readonly Buffer[]): void {
    this.#isDue = false;
    if (status < 400) this.#holdUntil(this.#options.invalidate());
    this.#pass(() => {
      this.#client.head(status, rawHeaders);
    });
  }

  #holdUntil(invalidated: Promise<void> | undefined): void {
    if (!invalidated) return;
    this.#held = [];
    void invalidated.then(() => {
      if (!this.#held) return;
      const held = this.#held;
      this.#held = null;
      try {
        for (const each of held) each();
      } catch (error) {
        this.#client.fail(malformed(error));
      }
      this.#options.resume();
    });
  }

  #pass(part: () => void): void {
    if (this.#held) this.#held.push(part);
    else part();
  }

  data(chunk: Buffer): boolean {
    if (!this.#held) return this.#client.data(chunk);
    this.#held.push(() => this.#client.data(chunk));
    return false;
  }

  end(): void {
    this.#pass(() => {
      this.#client.end();
    });
  }

  fail(refusal: Refusal): void {
    this.#held = null;
    this.#client.fail(refusal);
  }

  /** The client gets nothing more. */
  drop(): void {
    this.#held = null;
  }

  /** The upstream may have processed the request although no response arrived. */
  close(): void {
    this.drop();
    if (this.#isDue) void this.#options.invalidate();
  }
}
