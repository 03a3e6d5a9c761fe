import type { Pass } from '../../core/account.js';
import { isRead } from '../../core/content/runs-model.js';
import { Refusal } from '../../core/refusal.js';
import type { CacheTransaction } from '../../core/cache-transaction.js';
import type { RequestBody, Upload } from '../body.js';
import type { RequestFields } from '../fields.js';
import { askingForUsage, mayLackUsage, UsageFilter } from './added-usage.js';
import { CacheTee } from './cache-tee.js';
import type { Forwarding, Receiver } from './forwarder.js';
import { upstreamRequestHeaders } from './headers.js';
import type { OpenExchange } from './open-exchange.js';
import { isUnsafe } from './cache-request.js';
import type { Upstream } from './upstreams.js';
import { type ReservationOwner, ForwardReservation } from './forward-reservation.js';

const END_OF_EVENT = Buffer.from('\n\n');

/** The upstream's part of an exchange: draws one use, sends the request, and passes the response on as it arrives. */
export class UpstreamExchange implements Receiver, ReservationOwner {
  readonly #exchange: OpenExchange;
  readonly #pass: Pass;
  readonly #upload: Upload | null;
  /** Fields and body are null after the request was sent, so that their memory is freed. */
  #fields: RequestFields | null;
  #body: RequestBody;
  #transaction: CacheTransaction | null = null;
  #upstream: Upstream | null = null;
  #reservation: ForwardReservation | null = null;
  #forwarding: Forwarding | null = null;
  /** What the client gets later; null if nothing is held back. */
  #held: (() => void)[] | null = null;
  #cacheTee: CacheTee | null = null;
  /** Removes the usage that the client did not ask for. */
  #usageFilter: UsageFilter | null = null;
  /** The request may have changed the resource, so that stored responses must be invalidated; not yet known whether it did. */
  #invalidatesCache = false;

  /** @param upload reads the body; null if there is none. */
  constructor(exchange: OpenExchange, pass: Pass, fields: RequestFields, body: RequestBody, upload: Upload | null) {
    this.#exchange = exchange;
    this.#pass = pass;
    this.#upload = upload;
    this.#fields = fields;
    this.#body = body;
  }

  /** Whether the request was sent. */
  get isSent(): boolean {
    return this.#fields === null;
  }

  /** @param transaction the cache transaction that may use the response; null if the cache is not involved. */
  send(transaction: CacheTransaction | null): void {
    const exchange = this.#exchange;
    if (exchange.hasEnded() || this.isSent) return;
    const { req, settings } = exchange;
    const { admission, upstreams } = exchange.options;
    let upstream: Upstream;
    try {
      upstream = upstreams.of(this.#pass.upstreamBaseUrl);
    } catch (error) {
      exchange.refuse(error);
      return;
    }
    this.#upstream = upstream;
    this.#transaction = transaction;
    exchange.timeouts.pause();
    const spendsNone = !settings.countReads && isRead(req.method ?? '', req.url ?? '', this.#body !== null);
    this.#reservation = new ForwardReservation(this, (each) => admission.draw(each, spendsNone), upstream.forwarder);
    void this.#reservation.begin(this.#pass);
  }

  hasEnded(): boolean {
    return this.#exchange.hasEnded();
  }

  refuse(error: unknown): void {
    this.#exchange.refuse(error);
  }

  forward(): void {
    const exchange = this.#exchange;
    const pass = this.#pass;
    const { req, record, options } = exchange;
    const fields = this.#fields;
    const upstream = this.#upstream;
    if (!fields || !upstream) return;
    this.#invalidatesCache = options.cache !== null && isUnsafe(req);
    const nowMs = options.clock.monotonic();
    record.forwardedAtMs = nowMs;
    exchange.timeouts.waitForUpstream(nowMs);
    const asking = this.#askingForUsage(fields);
    const headers = upstreamRequestHeaders(asking ? { ...fields, forwarded: asking.forwarded } : fields, {
      upstreamKey: pass.upstreamKey,
      upstreamAuth: pass.upstreamAuth,
      requestId: record.requestId,
      loopMark: options.loopMark,
    });
    if (this.#transaction?.isResponseNeeded) {
      headers.push(...this.#transaction.conditionalHeaders);
      this.#cacheTee = this.#cacheTeeFor(this.#transaction);
    }
    const body = asking?.body ?? this.#body;
    const request = { method: req.method ?? 'GET', target: upstream.pathOf(req.url ?? '/'), headers, body };
    const receiver = this.#cacheTee ?? this;
    if (asking) this.#usageFilter = new UsageFilter(receiver);
    this.#forwarding = upstream.forwarder.forward(request, this.#usageFilter ?? receiver);
    this.#cacheTee?.started(this.#forwarding);
    if (Buffer.isBuffer(this.#body)) this.#upload?.end();
    this.#fields = this.#body = null;
  }

  #askingForUsage(fields: RequestFields): ReturnType<typeof askingForUsage> {
    const body = this.#body;
    const { req } = this.#exchange;
    return Buffer.isBuffer(body) && mayLackUsage(this.#pass, req, fields)
      ? askingForUsage(body, fields.forwarded)
      : null;
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
    this.#reservation?.end();
    // The client did not get it, but it is recorded. What came before it may be incomplete.
    const usage = this.#usageFilter?.removed;
    if (usage) record.content?.piece(Buffer.concat([END_OF_EVENT, usage]));
    // The upstream may have processed the request although no response arrived.
    if (this.#invalidatesCache) void options.cache?.invalidateTarget(this.#pass.projectId, req.url ?? '/');
  }
}
