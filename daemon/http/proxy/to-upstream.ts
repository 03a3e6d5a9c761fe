import type { Pass } from '../../core/account.js';
import { Refusal } from '../../core/refusal.js';
import type { Visit } from '../../core/visit.js';
import type { RequestBody } from '../body.js';
import type { RequestFields } from '../fields.js';
import type { HeldBody } from '../held-bodies.js';
import { Filling } from './filling.js';
import type { Forwarding, Receiver } from './forward.js';
import { upstreamRequestHeaders } from './headers.js';
import type { OpenExchange } from './open-exchange.js';
import { isWrite } from './seeking.js';
import { type Spender, Spending } from './spend.js';

/** The upstream's part of an exchange: a use is spent, the request goes out, and the answer is passed on as it comes. */
export class ToUpstream implements Receiver, Spender {
  readonly #exchange: OpenExchange;
  readonly #pass: Pass;
  readonly #held: HeldBody | null;
  /** Null, and the body with them, as soon as the request has gone out: nobody needs them any more. */
  #fields: RequestFields | null;
  #body: RequestBody;
  #visit: Visit | null = null;
  #spending: Spending | null = null;
  #forwarding: Forwarding | null = null;
  #filling: Filling | null = null;
  /** A change was sent of which nobody knows yet whether it was made. */
  #mayHaveChanged = false;

  /** @param held what is held of the body. */
  constructor(exchange: OpenExchange, pass: Pass, fields: RequestFields, body: RequestBody, held: HeldBody | null) {
    this.#exchange = exchange;
    this.#pass = pass;
    this.#held = held;
    this.#fields = fields;
    this.#body = body;
  }

  /** Whether the request has gone out. */
  get isAsked(): boolean {
    return this.#fields === null;
  }

  /** @param visit to the cache, for which the answer may be of use. */
  ask(visit: Visit | null): void {
    const exchange = this.#exchange;
    if (exchange.isOver() || this.isAsked) return;
    const { admission, forwarder } = exchange.options;
    this.#visit = visit;
    exchange.turn.waitForNobody();
    this.#spending = new Spending(this, admission, forwarder);
    void this.#spending.begin(this.#pass);
  }

  isOver(): boolean {
    return this.#exchange.isOver();
  }

  refuse(error: unknown): void {
    this.#exchange.refuse(error);
  }

  forward(): void {
    const exchange = this.#exchange;
    const pass = this.#pass;
    const { req, record, options } = exchange;
    const fields = this.#fields;
    if (!fields) return;
    this.#mayHaveChanged = options.cache !== null && isWrite(req);
    const nowMs = options.clock.monotonic();
    record.forwardedAtMs = nowMs;
    exchange.turn.waitForUpstream(nowMs);
    const headers = upstreamRequestHeaders(fields, {
      upstreamKey: pass.upstreamKey,
      requestId: record.requestId,
      loopMark: options.loopMark,
    });
    if (this.#visit?.isOfUse) {
      headers.push(...this.#visit.question);
      this.#filling = this.#fillingFor(this.#visit);
    }
    const request = { method: req.method ?? 'GET', target: req.url ?? '/', headers, body: this.#body };
    this.#forwarding = options.forwarder.forward(request, this.#filling ?? this);
    this.#filling?.begun(this.#forwarding);
    this.#fields = this.#body = null;
    this.#held?.release();
  }

  #fillingFor(visit: Visit): Filling {
    const { options, watches, settings } = this.#exchange;
    const { requestTimeoutMs } = settings;
    return new Filling(this, visit, this.#pass, { admission: options.admission, watches, requestTimeoutMs });
  }

  // ---- its answer

  head(status: number, rawHeaders: readonly Buffer[]): void {
    const { options, turn, record, answering, req } = this.#exchange;
    const nowMs = options.clock.monotonic();
    turn.waitForUpstream(nowMs);
    if (this.#filling?.isConfirmation) record.content?.repeated();
    answering.head(this.#pass, status, rawHeaders, nowMs);
    if (this.#mayHaveChanged) {
      this.#mayHaveChanged = false;
      // Before the client hears of it.
      if (status < 400) options.cache?.wrote(this.#pass.projectId, req.url ?? '/');
    }
  }

  data(piece: Buffer): boolean {
    this.#exchange.turn.touch();
    return this.#exchange.answering.data(piece);
  }

  end(): void {
    this.#exchange.answering.end();
  }

  fail(refusal: Refusal): void {
    const exchange = this.#exchange;
    if (!exchange.res.headersSent) {
      exchange.refuse(refusal);
      return;
    }
    exchange.record.cause = refusal.cause;
    if (refusal.kind === 'upstream_timeout') exchange.destroy('timeout', refusal);
    else exchange.destroy('truncated'); // As the client would see it without us.
  }

  /** It has given no sign for too long. */
  silent(): void {
    // If it is the client that takes nothing, nobody is there to be told.
    if (this.#exchange.res.writableNeedDrain) this.#exchange.destroy('client_closed');
    else (this.#filling ?? this).fail(new Refusal('upstream_timeout', 'upstream timed out'));
  }

  /** Goes on with an answer that the client could not take for a while. */
  resume(): void {
    this.#forwarding?.resume();
  }

  // ---- its end

  /** Nothing of it goes on. */
  abort(): void {
    this.#forwarding?.abort();
  }

  /** The client has left. @returns whether the answer is of use to others, and goes on. */
  leave(): boolean {
    return this.#filling?.leave() ?? false;
  }

  /** The exchange is over. */
  close(): void {
    const { options, req } = this.#exchange;
    this.#spending?.end();
    // It may have been heard, whether or not we heard of it.
    if (this.#mayHaveChanged) options.cache?.wrote(this.#pass.projectId, req.url ?? '/');
  }
}
