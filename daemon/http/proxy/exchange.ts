import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Pass } from '../../core/account.js';
import type { Outcome } from '../../core/events.js';
import { type LinkedSet, LinkedSetMember } from '../../core/linked-set.js';
import { Refusal, unavailable } from '../../core/refusal.js';
import { admit, type AdmissionRequest } from './admit.js';
import { ClientResponse } from './client-response.js';
import { ClientGone, type RequestBody } from '../body.js';
import { type PresentedToken, presentedTokenIn } from '../credentials.js';
import { cut, linger } from '../connection-ends.js';
import type { RequestFields } from '../fields.js';
import { CacheLookup } from './cache-lookup.js';
import type { BufferedBody } from '../buffered-bodies.js';
import type { ExchangeOptions, ExchangeSettings, OpenExchange } from './open-exchange.js';
import { asRefusal } from '../problems.js';
import { readBody } from './read-body.js';
import { RequestRecord } from './request-record.js';
import { cacheRequestOf } from './cache-request.js';
import { checkExpectation } from '../shape.js';
import { UpstreamExchange } from './upstream-exchange.js';
import { TransferTimeouts } from './timeouts/transfer-timeouts.js';
import type { IdleTimers } from './timeouts/idle-timers.js';

/**
 * One request on /v1 and its response. This class defines the order of the steps and the ways in which a request ends; the cache, the
 * upstream and the response to the client are separate parts.
 */
export class Exchange extends LinkedSetMember implements AdmissionRequest, OpenExchange {
  readonly options: ExchangeOptions;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly expectsContinue: boolean;
  readonly #inFlight: LinkedSet<Exchange>;
  readonly idleTimers: IdleTimers;
  readonly settings: ExchangeSettings;
  readonly record: RequestRecord;
  readonly timeouts: TransferTimeouts;
  readonly clientResponse: ClientResponse;
  /** The part of its body that is buffered. */
  #bufferedBody: BufferedBody | null = null;
  #cacheLookup: CacheLookup | null = null;
  #upstream: UpstreamExchange | null = null;

  constructor(
    options: ExchangeOptions,
    req: IncomingMessage,
    res: ServerResponse,
    expectsContinue: boolean,
    inFlight: LinkedSet<Exchange>,
    idleTimers: IdleTimers,
  ) {
    super();
    this.options = options;
    this.req = req;
    this.res = res;
    this.expectsContinue = expectsContinue;
    this.#inFlight = inFlight;
    this.idleTimers = idleTimers;
    this.settings = options.live.current;
    this.record = new RequestRecord(options, req);
    this.timeouts = new TransferTimeouts(idleTimers, this.settings, this);
    this.clientResponse = new ClientResponse(req, res, this.record, this.settings, this.#onDrain);
    res.on('close', () => {
      this.#close();
    });
  }

  // ---- steps: admission, the body, then the cache or the upstream

  run(): void {
    void admit(this, this.options);
  }

  get maxBodyBytes(): number {
    return this.options.maxRequestBytes;
  }

  onIdentified(): boolean {
    if (this.expectsContinue) checkExpectation(this.req);
    if (this.req.method !== 'OPTIONS') return true;
    this.clientResponse.answerOptions();
    this.options.unreadResponses.watch(this.res);
    return false;
  }

  presentedToken(fields: RequestFields): PresentedToken | null {
    return presentedTokenIn(fields, this.req.socket);
  }

  onAdmitted(pass: Pass, fields: RequestFields): void {
    this.#bufferedBody = readBody(this, fields, (body) => {
      this.#serve(pass, fields, body);
    });
  }

  #serve(pass: Pass, fields: RequestFields, body: RequestBody): void {
    if (this.hasEnded()) return; // It was refused or cut while its body arrived.
    const { cache } = this.options;
    const read = this.#observeBody(body);
    this.#upstream = new UpstreamExchange(this, pass, fields, read, this.#bufferedBody);
    const facts = cache && cacheRequestOf(this.req, { pass, fields, body: read });
    if (facts) {
      this.#cacheLookup = new CacheLookup(this, cache, facts, pass, this.#upstream);
      this.#cacheLookup.begin();
    } else {
      this.#upstream.send(null);
    }
  }

  /** Lets the content reader observe the body, for usage and events. */
  #observeBody(body: RequestBody): RequestBody {
    const content = this.options.contents.begin();
    this.record.content = content;
    if (body === null) return null;
    if (!Buffer.isBuffer(body)) return content.streamedRequestBody(body);
    content.requestBody(body);
    return body;
  }

  readonly #onDrain = () => {
    this.timeouts.touch();
    this.#upstream?.resume();
  };

  clientTimedOut(): void {
    this.refuse(new Refusal('request_timeout', 'the request body did not arrive in time'));
  }

  upstreamTimedOut(): void {
    this.#upstream?.timedOut();
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
    if (this.hasEnded() || error instanceof ClientGone) return;
    const refusal = asRefusal(error);
    this.record.refused(refusal);
    this.#abort();
    // A client that got no `100 Continue` may or may not send its body, so the start of a next request could not be recognised.
    if (this.expectsContinue) this.res.shouldKeepAlive = false;
    this.clientResponse.refuse(refusal);
    this.options.unreadResponses.watch(this.res);
  }

  cut(refusal: Refusal): void {
    if (this.res.headersSent) this.destroy('revoked', refusal);
    else this.refuse(refusal);
    this.record.outcome = 'revoked';
  }

  /** Called when the daemon stops and cannot wait any longer. */
  drain(): void {
    if (this.res.headersSent) this.destroy('drained', unavailable());
    else this.refuse(unavailable());
    this.record.outcome = 'drained';
  }

  destroy(outcome: Outcome, why?: Refusal): void {
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
    this.#cacheLookup?.quit();
  }

  /** The complete response was sent, or the connection is closed. */
  #close(): void {
    this.#inFlight.delete(this);
    this.#bufferedBody?.release();
    this.timeouts.end();
    // Node also reports a response as finished if its rest was discarded because the client reset the connection.
    const isSent = this.res.writableFinished && !this.req.socket.destroyed;
    if (!isSent) this.#clientLeft();
    this.#cacheLookup?.close();
    this.#upstream?.close();
    if (!isSent) this.record.clientLeftEarly();
    linger(this.req, this.options.clock);
    this.record.bytesIn = this.timeouts.receivedBytes;
    this.record.end();
  }
}
