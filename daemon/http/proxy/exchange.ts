import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Pass } from '../../core/account.js';
import type { Outcome } from '../../core/events.js';
import { type LinkedSet, LinkedSetMember } from '../../core/linked-set.js';
import { Refusal, unavailable } from '../../core/refusal.js';
import { admit, type AdmissionRequest } from './admit.js';
import { ClientResponse } from './client-response.js';
import { ClientGone, type RequestBody, type Upload } from '../body.js';
import { type PresentedToken, presentedTokenIn } from '../credentials.js';
import { cut, linger } from '../connection-ends.js';
import type { RequestFields } from '../fields.js';
import { CacheLookup } from './cache-lookup.js';
import type { ExchangeOptions, ExchangeSettings, OpenExchange } from './open-exchange.js';
import type { TurnTask, TurnTasks } from './turn-queue.js';
import { asRefusal } from '../problems.js';
import { readBody } from './read-body.js';
import { RequestRecord } from './request-record.js';
import { cacheRequestOf } from './cache-request.js';
import { checkExpectation } from '../shape.js';
import type { CacheTransaction } from '../../core/cache-transaction.js';
import { UpstreamExchange } from './upstream-exchange.js';
import { TransferTimeouts } from './timeouts/transfer-timeouts.js';
import type { IdleTimers } from './timeouts/idle-timers.js';

/** What the requests of a proxy share. */
export interface ProxyState {
  /** Those that have not ended. */
  inFlight: LinkedSet<Exchange>;
  idleTimers: IdleTimers;
  turnTasks: TurnTasks;
}

/**
 * One request on /v1 and its response. This class defines the order of the steps and the ways in which a request ends; the cache, the
 * upstream and the response to the client are separate parts.
 */
export class Exchange extends LinkedSetMember implements AdmissionRequest, OpenExchange, TurnTask {
  readonly options: ExchangeOptions;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly expectsContinue: boolean;
  readonly #state: ProxyState;
  readonly settings: ExchangeSettings;
  readonly record: RequestRecord;
  readonly timeouts: TransferTimeouts;
  readonly clientResponse: ClientResponse;
  #upload: Upload | null = null;
  #cacheLookup: CacheLookup | null = null;
  #upstream: UpstreamExchange | null = null;
  #pass: Pass | null = null;
  /** Fields and body are null after the request was sent, so that their memory is freed. */
  #fields: RequestFields | null = null;
  #body: RequestBody = null;

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
    this.expectsContinue = expectsContinue;
    this.#state = state;
    this.settings = options.live.current;
    this.record = new RequestRecord(options, req);
    this.timeouts = new TransferTimeouts(state.idleTimers, this.settings, this);
    this.clientResponse = new ClientResponse(this, state.turnTasks);
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
    this.#pass = pass;
    this.#fields = fields;
    this.#upload = readBody(this, fields);
  }

  onBody(body: RequestBody): void {
    this.#body = body;
    this.#state.turnTasks.add(this);
  }

  /** The last step: from the cache or the upstream. */
  atEndOfTurn(): void {
    const pass = this.#pass;
    const fields = this.#fields;
    if (!pass || !fields || this.hasEnded()) return; // It was refused or cut while its body arrived.
    try {
      this.#serve(pass, fields);
    } catch (error) {
      this.refuse(error);
    }
  }

  #serve(pass: Pass, fields: RequestFields): void {
    const { cache } = this.options;
    const body = (this.#body = this.#observeBody(this.#body));
    const facts = cache && cacheRequestOf(this.req, { pass, fields, body });
    if (facts) {
      this.#cacheLookup = new CacheLookup(this, cache, facts, pass);
      this.#cacheLookup.begin();
    } else {
      this.forward(null);
    }
  }

  forward(transaction: CacheTransaction | null): void {
    const pass = this.#pass;
    const fields = this.#fields;
    if (!pass || !fields || this.hasEnded()) return;
    this.#fields = null;
    this.#upstream = new UpstreamExchange(this, pass, fields, this.#body, this.#upload);
    this.#body = null;
    this.#upstream.send(transaction);
  }

  get isForwarded(): boolean {
    return this.#upstream?.isSent === true;
  }

  resume(): void {
    this.#upstream?.resume();
  }

  get idleTimers(): IdleTimers {
    return this.#state.idleTimers;
  }

  /** Lets the content reader observe the body, for usage and events. */
  #observeBody(body: RequestBody): RequestBody {
    const content = this.options.contents.begin(this.#pass?.projectId ?? '');
    this.record.content = content;
    if (body === null) return null;
    if (!Buffer.isBuffer(body)) return content.streamedRequestBody(body);
    content.requestBody(body);
    return body;
  }

  /** The client has read what was buffered of its response. */
  onDrain(): void {
    this.timeouts.touch();
    this.resume();
  }

  clientTimedOut(): void {
    this.refuse(new Refusal('request_timeout', 'the request body did not arrive in time'));
  }

  dropBody(): void {
    if (this.#cacheLookup?.stopWaiting()) return;
    // Other early responses are followed by reading the rest for a while. Here that would take the memory that is needed.
    this.res.once('finish', () => this.req.socket.destroy());
    if (this.res.headersSent) this.destroy('client_closed');
    else this.refuse(unavailable());
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
    if (this.hasEnded() || error instanceof ClientGone || this.clientResponse.flush()) return;
    const refusal = asRefusal(error);
    this.record.refused(refusal);
    this.#abort();
    // A client that got no `100 Continue` may or may not send its body, so the start of a next request could not be recognised.
    if (this.expectsContinue) this.res.shouldKeepAlive = false;
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
    this.#cacheLookup?.quit();
  }

  /** The complete response was sent, or the connection is closed. */
  #close(): void {
    this.#state.inFlight.delete(this);
    this.#upload?.end();
    this.clientResponse.close();
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
