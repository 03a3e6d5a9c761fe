/**
 * One request on /v1, from its first byte to its record. The steps, in the order of this file:
 *
 *   1–5 admission   shape, rate limits, credential: admit.ts                       400 to 431 501 505 508
 *       body        small ones are buffered, large ones streamed: body.ts          408 413
 *   6   cache       replay a stored response: core/cache-transaction.ts            504
 *   7   upstream    draw one use, swap the key, stream both ways:
 *                   upstream-exchange.ts, client-response.ts                       413 429 502 503 504
 *   8   record      publish one RequestEnded value: request-record.ts
 *
 * and the ways in which it ends early: it is refused, cut or drained, or its client leaves.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Live, Reloadable, Settings } from '../../../config/settings.js';
import type { Pass } from '../../core/account.js';
import type { Bound, Boundless } from '../../core/budget/bound.js';
import type { Spending } from '../../core/budget/budgets.js';
import { isNotModified } from '../../core/cache/caching.js';
import type { FreshResponse, ResponseCache } from '../../core/cache/response-cache.js';
import { type CacheClient, CacheTransaction } from '../../core/cache-transaction.js';
import type { ContentReaders } from '../../core/content/content-reader.js';
import { modelNameFrom } from '../../core/content/facts.js';
import { isRead, runsModel } from '../../core/content/runs-model.js';
import type { Outcome } from '../../core/events.js';
import { type LinkedSet, LinkedSetMember } from '../../core/linked-set.js';
import type { Asked, BodyModels } from '../../core/policy/policy.js';
import type { StoredResponse } from '../../core/ports.js';
import { Refusal, unavailable } from '../../core/refusal.js';
import { type BodyReceiver, isBufferable, type RequestBody, Upload } from './body.js';
import { ClientGone, cut, linger } from '../connection-ends.js';
import type { CorsSettings } from '../cors.js';
import { type PresentedToken, presentedTokenIn } from '../client-identity.js';
import { checkExpectation, hasBody, type RequestFields } from '../request-head.js';
import { asRefusal } from '../problems.js';
import type { TurnTask } from '../scheduler.js';
import type { WordingSettings } from '../wording.js';
import { checkAsksForUsage, MAX_BODY_BYTES, mayLackUsage } from './added-usage.js';
import { type AdmissionRequest, type AdmitOptions, type AdmitSettings, checkNotEnded, unlessEnded } from './admit.js';
import { askedOf } from './asked.js';
import { bodyIsPartOfKey, cacheRequestOf, MAX_KEY_BODY_BYTES } from './cache-request.js';
import { ClientResponse } from './client-response.js';
import { boundOfRequest, isFree, mostToJudge, startsMore } from './budgeted.js';
import { RequestRecord } from './request-record.js';
import { type IdleTimers, TransferTimeouts } from './timeouts.js';
import { UpstreamExchange } from './upstream-exchange.js';
import type { Upstreams } from './upstreams.js';

export type ExchangeSettings = AdmitSettings &
  CorsSettings &
  WordingSettings &
  Pick<Reloadable, 'requestTimeoutMs' | 'clientBodyTimeoutMs' | 'countReads'>;

export interface ExchangeOptions extends AdmitOptions, Pick<Settings, 'maxRequestBytes' | 'proxyPrefixes'> {
  /** Null if the cache is off. */
  cache: ResponseCache | null;
  contents: Pick<ContentReaders, 'begin'>;
  upstreams: Pick<Upstreams, 'of'>;
  /** The current settings: SIGHUP may replace them. A request keeps those that it began with. */
  live: Live<keyof ExchangeSettings>;
}

/** What the requests of a proxy share. */
export interface ProxyState {
  /** Those that have not ended. */
  inFlight: LinkedSet<Exchange>;
  idleTimers: IdleTimers;
}

export class Exchange extends LinkedSetMember implements AdmissionRequest, BodyReceiver, CacheClient, TurnTask {
  readonly options: ExchangeOptions;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly maxBodyBytes: number;
  /** Whether the client waits for `100 Continue` before it sends its body. */
  readonly #expectsContinue: boolean;
  readonly #state: ProxyState;
  readonly settings: ExchangeSettings;
  readonly record: RequestRecord;
  readonly timeouts: TransferTimeouts;
  readonly clientResponse: ClientResponse;
  /** Fields and body are null until it is admitted, and after it was sent, so that their memory is freed. */
  #fields: RequestFields | null = null;
  #body: RequestBody = null;
  #upload: Upload | null = null;
  /** What it asks for, if its token has a policy or a budget. */
  #asked: Asked | null = null;
  /** Whether its body is checked while it is forwarded, so that its use may be undone. */
  #withholdsUse = false;
  /** Null if the cache is not involved. */
  #cacheTransaction: CacheTransaction | null = null;
  /** Whether the response to an identical request is awaited. */
  #awaitsOther = false;
  #replayed: StoredResponse | null = null;
  /** Null until it is to be forwarded. */
  #upstream: UpstreamExchange | null = null;

  constructor(
    options: ExchangeOptions,
    state: ProxyState,
    req: IncomingMessage,
    res: ServerResponse,
    expectsContinue: boolean,
  ) {
    super();
    this.options = options;
    this.req = req;
    this.res = res;
    this.maxBodyBytes = options.maxRequestBytes;
    this.#expectsContinue = expectsContinue;
    this.#state = state;
    this.settings = options.live.current;
    this.record = new RequestRecord(options, req);
    this.timeouts = new TransferTimeouts(state.idleTimers, this.settings, this);
    this.clientResponse = new ClientResponse(this);
    res.on('close', () => {
      this.#close();
    });
  }

  get asked(): Asked {
    return (this.#asked ??= askedOf(this.req, false));
  }

  // ---- admission

  onIdentified(): boolean {
    if (this.#expectsContinue) checkExpectation(this.req);
    if (this.req.method !== 'OPTIONS') return true;
    this.clientResponse.answerOptions();
    this.options.unreadResponses.watch(this.res);
    return false;
  }

  presentedToken(fields: RequestFields): PresentedToken | null {
    return presentedTokenIn(fields, this.req.socket);
  }

  readsBody(pass: Pass): boolean {
    const { policy } = pass;
    if (policy === null) return false;
    return (this.asked.body = policy.readerFor(this.asked)) !== null;
  }

  onAdmitted(pass: Pass, fields: RequestFields): void {
    this.#fields = fields;
    if (hasBody(fields)) this.#upload = this.#readBody(pass, fields);
    else this.onBody(null);
  }

  // ---- the body

  /**
   * Small bodies are buffered before any use is drawn, and so are those that are part of a cache key or may have to be changed. Others are
   * streamed once they have begun.
   */
  #readBody(pass: Pass, fields: RequestFields): Upload {
    const { options, req, timeouts } = this;
    if (this.#expectsContinue) this.res.writeContinue();
    timeouts.beginBody();
    const isOfKey = options.cache !== null && bodyIsPartOfKey(req, fields);
    const declaredBytes = fields.contentLength === undefined ? null : Number(fields.contentLength);
    const collectedBytes = Math.max(
      isOfKey ? MAX_KEY_BODY_BYTES : 0,
      mayLackUsage(pass.missingUsage, req, fields) ? (MAX_BODY_BYTES[pass.missingUsage] ?? 0) : 0,
      pass.budgets === null ? 0 : mostToJudge(pass.budgets, declaredBytes),
    );
    return new Upload(req, this, {
      timeouts,
      memory: options.memory,
      declaredBytes,
      maxBytes: this.maxBodyBytes,
      maxCollectedBytes: isBufferable(fields) ? Infinity : collectedBytes,
    });
  }

  /** It has arrived, or the beginning of one that is streamed. */
  onBody(body: RequestBody): void {
    this.#body = body;
    this.options.scheduler.atEndOfTurn(this);
  }

  dropBody(): void {
    if (this.#awaitsOther) {
      this.#cacheTransaction?.stopWaiting();
      return;
    }
    // Other early responses are followed by reading the rest for a while. Here that would take the memory that is needed.
    this.res.once('finish', () => this.req.socket.destroy());
    if (this.res.headersSent) this.destroy('client_closed');
    else this.refuse(unavailable());
  }

  clientTimedOut(): void {
    this.refuse(new Refusal('request_timeout', 'the request body did not arrive in time'));
  }

  // ---- the cache

  atEndOfTurn(): void {
    const fields = this.#fields;
    const { pass } = this.record;
    if (!pass || !fields || this.hasEnded()) return; // It was refused or cut while its body arrived.
    try {
      const body = this.#body;
      if (pass.missingUsage === 'refuse' && Buffer.isBuffer(body) && mayLackUsage('refuse', this.req, fields))
        checkAsksForUsage(body);
      const counting = this.#asked?.body ? this.#checkBody(pass, this.#asked.body) : undefined;
      if (counting) void this.#lookUpAfter(counting, pass, fields);
      else this.#lookUp(pass, fields);
    } catch (error) {
      this.refuse(error);
    }
  }

  /** Checks what the body asks for: all of it, or part by part while it is forwarded. Then the limit of all requests counts it. */
  #checkBody(pass: Pass, models: BodyModels): Promise<void> | undefined {
    const body = this.#body;
    if (Buffer.isBuffer(body)) {
      models.add(body);
      models.end();
      this.options.admission.checkBody(pass, this);
    } else if (body !== null) {
      this.#withholdsUse = true;
      this.#body = this.#checkedStream(body, pass, models);
    }
    return this.options.rateLimits.countAuthenticated();
  }

  /** The last piece waits for the verdict, so that the provider never gets a complete request that is not allowed. */
  async *#checkedStream(body: AsyncIterable<Buffer>, pass: Pass, models: BodyModels): AsyncGenerator<Buffer> {
    const { admission } = this.options;
    let held: Buffer | null = null;
    for await (const piece of body) {
      models.add(piece);
      this.#checkPart(pass);
      if (held) yield held;
      held = piece;
    }
    models.end();
    this.#checkPart(pass);
    admission.forwarded(pass);
    if (held) yield held;
  }

  #checkPart(pass: Pass): void {
    const { admission } = this.options;
    try {
      admission.checkBody(pass, this);
    } catch (error) {
      // A provider that responds to a part of the request has been used.
      if (this.record.respondedAtMs === null) {
        admission.takeBack(pass);
        this.record.isUse = false;
      }
      throw error;
    }
  }

  async #lookUpAfter(counting: Promise<void>, pass: Pass, fields: RequestFields): Promise<void> {
    try {
      await unlessEnded(this, counting);
      this.#lookUp(pass, fields);
    } catch (error) {
      this.refuse(error);
    }
  }

  #lookUp(pass: Pass, fields: RequestFields): void {
    try {
      const { cache } = this.options;
      const body = (this.#body = this.#observed(this.#body, pass));
      const facts = cache && cacheRequestOf(this.req, { pass, fields, body });
      if (!facts) {
        this.forward();
        return;
      }
      this.#cacheTransaction = new CacheTransaction(cache, facts, this);
      this.#cacheTransaction.begin();
    } catch (error) {
      this.refuse(error);
    }
  }

  /** Lets the content reader observe the body, for usage and events. */
  #observed(body: RequestBody, pass: Pass): RequestBody {
    const content = this.options.contents.begin(pass.projectId);
    this.record.content = content;
    if (body === null) return null;
    if (!Buffer.isBuffer(body)) return content.streamedRequestBody(body);
    content.requestBody(body);
    return body;
  }

  wait(): void {
    this.#awaitsOther = true;
    this.timeouts.waitForSharedResponse(() => {
      this.#cacheTransaction?.stopWaiting();
    });
  }

  stopPacing(): void {
    this.#upstream?.resume();
  }

  replay(fresh: FreshResponse): void {
    const { pass } = this.record;
    this.#awaitsOther = false;
    if (!pass || this.hasEnded() || this.#upstream) return;
    this.timeouts.pause();
    void this.#replay(fresh, pass);
  }

  async #replay(fresh: FreshResponse, pass: Pass): Promise<void> {
    const { admission, cache, clock, unreadResponses } = this.options;
    const transaction = this.#cacheTransaction;
    if (!cache || !transaction) return;
    try {
      const confirming = admission.confirm(pass);
      if (confirming) await confirming;
      checkNotEnded(this, pass);
      const { response } = fresh;
      const ages = cache.agesOf(fresh);
      if (ages.freshForMs <= 0) {
        this.forward(); // It went stale while this request waited.
        return;
      }
      admission.countHit(pass);
      cache.hits += 1;
      cache.replays.begin(response);
      this.#replayed = response;
      const { condition } = transaction;
      const isHeld = condition !== null && isNotModified(condition, response, clock.now());
      this.clientResponse.replay(pass, response, ages, isHeld, clock.monotonic());
      unreadResponses.watch(this.res, true);
    } catch (error) {
      this.refuse(error);
    }
  }

  // ---- the upstream

  /** Called once, when no stored response may be used. */
  forward(): void {
    this.#awaitsOther = false;
    const fields = this.#fields;
    const { pass } = this.record;
    if (!pass || !fields || this.#upstream || this.hasEnded()) return;
    this.timeouts.pause();
    void this.#forward(pass, fields);
  }

  /** Waits for a connection, draws a use, and sends the request. */
  async #forward(pass: Pass, fields: RequestFields): Promise<void> {
    const { req, settings, options } = this;
    try {
      const spendsNone = !settings.countReads && isRead(req.method ?? '', req.url ?? '', this.#body !== null);
      const upstream = (this.#upstream = this.#upstreamOf(pass));
      if (upstream.slot.granted) await upstream.slot.granted;
      checkNotEnded(this, pass);
      const runs = runsModel(req.method ?? '', req.url ?? '');
      const spending = pass.budgets === null ? null : this.#spending(pass, fields);
      const waitingForUnit = options.admission.draw(pass, spendsNone, this.#withholdsUse, runs, spending);
      if (waitingForUnit) await waitingForUnit;
      checkNotEnded(this, pass);
      this.#send(upstream, fields); // In the same turn as these checks, so that nothing can happen in between.
    } catch (error) {
      this.refuse(error);
    }
  }

  /** What it may spend; null if that is nothing. */
  #spending(pass: Pass, { contentLength }: RequestFields): Spending | null {
    const { budgets } = pass;
    if (budgets === null) return null;
    const { asked, req, record } = this;
    const goesOn = startsMore(asked) && budgets.some(({ mode }) => mode === 'hard');
    if (!goesOn && isFree(asked)) return null;
    const body = this.#body;
    const upstream = this.options.upstreams.of(pass.upstreamBaseUrl);
    const sent = {
      asked,
      target: upstream.pathOf(req.url ?? '/'),
      body,
      host: upstream.host,
    };
    let bound: Bound | Boundless | null = null;
    let model: string | null | undefined;
    return {
      model: () => (model ??= record.content?.requestedModel(req.url) ?? modelNameFrom(asked.facts.models[0])),
      bytes: Buffer.isBuffer(body) ? body.length : Number(contentLength ?? 0),
      // It may take milliseconds, and two budgets and a refusal ask for it.
      bound: (limitsOf) => (bound ??= boundOfRequest(sent, limitsOf)),
    };
  }

  #upstreamOf(pass: Pass): UpstreamExchange {
    const { options, settings, req, record } = this;
    const { idleTimers } = this.#state;
    const upstream = options.upstreams.of(pass.upstreamBaseUrl);
    const transaction = this.#cacheTransaction;
    return new UpstreamExchange(
      { options, idleTimers, settings, req, record, pass, upstream, transaction },
      this.clientResponse,
    );
  }

  #send(upstream: UpstreamExchange, fields: RequestFields): void {
    const body = this.#body;
    const nowMs = this.options.clock.monotonic();
    this.record.forwardedAtMs = nowMs;
    this.timeouts.waitForUpstream(nowMs);
    upstream.send(fields, body);
    this.#fields = this.#body = null;
    if (Buffer.isBuffer(body)) this.#upload?.end();
  }

  /** The client has read what was buffered of its response. */
  onDrain(): void {
    this.timeouts.touch();
    this.#upstream?.resume();
  }

  /** The upstream's response is missing or incomplete. */
  fail(refusal: Refusal): void {
    if (!this.res.headersSent) {
      this.refuse(refusal);
      return;
    }
    this.record.cause = refusal.cause;
    if (refusal.kind === 'upstream_timeout') this.destroy('timeout', refusal);
    else this.destroy('truncated'); // As the client would see it without this proxy.
  }

  upstreamTimedOut(): void {
    // If the client is the one that stalls (it does not read), an error response would not reach it either.
    if (this.clientResponse.isUnread) this.destroy('client_closed');
    else this.#upstream?.fail(new Refusal('upstream_timeout', 'upstream timed out', { mayBeBilled: true }));
  }

  // ---- ways to end

  hasEnded(): boolean {
    return this.record.outcome !== null || this.res.closed;
  }

  isClosed(): boolean {
    return this.res.closed;
  }

  /** Also called from outside the exchange, when the rest of the request cannot be parsed. */
  refuse(error: unknown): void {
    if (this.hasEnded() || error instanceof ClientGone || this.clientResponse.flush()) return;
    const refusal = asRefusal(error);
    this.record.refused(refusal);
    this.#abort();
    // A client that got no `100 Continue` may or may not send its body, so the start of a next request could not be recognised.
    if (this.#expectsContinue) this.res.shouldKeepAlive = false;
    this.clientResponse.refuse(refusal);
    this.options.unreadResponses.watch(this.res);
  }

  cut(refusal: Refusal): void {
    if (this.clientResponse.flush()) return;
    if (this.res.headersSent) this.destroy('revoked', refusal);
    else this.refuse(refusal);
    this.record.outcome = 'revoked';
  }

  /** Called when the daemon stops and cannot wait any longer. */
  drain(): void {
    if (this.clientResponse.flush()) return;
    if (this.res.headersSent) this.destroy('drained', unavailable());
    else this.refuse(unavailable());
    this.record.outcome = 'drained';
  }

  destroy(outcome: Outcome, why?: Refusal): void {
    if (this.clientResponse.flush()) return;
    this.record.outcome ??= outcome;
    if (outcome === 'client_closed') this.#clientLeft();
    else this.#abort();
    if (why) this.clientResponse.sendCutReason(why);
    cut(this.res);
  }

  /** The client has disconnected. The transfer continues if other requests wait for it. */
  #clientLeft(): void {
    if (!this.#upstream?.clientLeft()) this.#abort();
  }

  /** Stops all work for this request. Requests that wait for its response need another one. */
  #abort(): void {
    this.#upstream?.abort();
    this.#cacheTransaction?.quit();
  }

  /** The complete response was sent, or the connection is closed. */
  #close(): void {
    this.#state.inFlight.delete(this);
    this.record.isSent = (this.#upstream?.mayBeSent ?? false) && (this.#upload?.isTaken ?? true);
    this.#upload?.end();
    this.clientResponse.close();
    this.timeouts.end();
    // Node also reports a response as finished if its rest was discarded because the client reset the connection.
    const isSent = this.res.writableFinished && !this.req.socket.destroyed;
    if (!isSent) this.#clientLeft();
    if (this.#replayed) this.options.cache?.replays.end(this.#replayed);
    this.#upstream?.close();
    if (!isSent) this.record.clientLeftEarly();
    linger(this.req, this.options.clock);
    this.record.bytesIn = this.timeouts.receivedBytes;
    this.record.end();
  }
}
