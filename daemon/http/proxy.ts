/**
 * /v1: the request's way.
 *
 *   1 shape        method, target, framing, headers, declared length       400 405 413 414 417 431 501 505 508
 *   2 rate limit   of the client's address                                 429 503
 *   3 credential   Authorization: Bearer sk-wt-…                           401
 *   4 admission    exists & active? expired? project active? uses left?    401 401 403 429
 *   5 rate limit   of all requests with a valid token                      429 503
 *   7 forward      draw one use, swap the key, stream both ways            408 413 429 502 503 504
 *   8 afterwards   one RequestEnded value for all who keep a record
 *
 * (6 is the cache.)
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Settings } from '../../config/settings.js';
import type { Pass } from '../core/account.js';
import type { Admission } from '../core/admission.js';
import type { Outcome } from '../core/events.js';
import type { RateLimits } from '../core/rate-limit.js';
import { loopDetected, Refusal, unauthorized, unavailable } from '../core/refusal.js';
import { InFlight, Member } from '../core/in-flight.js';
import { ClientGone, hasBody, holdBody, isHeld, type RequestBody, streamBody, type Turns } from './body.js';
import type { AddressOf } from './client-address.js';
import { corsFields, type CorsSettings, preflightFields } from './cors.js';
import { presentedIn } from './credentials.js';
import { closeGently, cut, linger } from './endings.js';
import type { RequestFields } from './fields.js';
import type { Forwarder, Forwarding, Place, Receiver } from './forward.js';
import { clientResponseHeaders, recordedId, upstreamRequestHeaders } from './headers.js';
import { Patience } from './patience.js';
import { asRefusal, sendProblem } from './problems.js';
import { type RecordOptions, RequestRecord } from './record.js';
import { checkExpectation, checkShape } from './shape.js';
import { Watch, Watches } from './watch.js';

type ProxySettings = CorsSettings & Pick<Settings, 'maxRequestBytes' | 'requestTimeoutMs' | 'clientBodyTimeoutMs'>;

export interface ProxyOptions extends RecordOptions {
  admission: Admission;
  rateLimits: Pick<RateLimits, 'countsAddresses' | 'countAddress' | 'countValid'>;
  addressOf: AddressOf;
  forwarder: Forwarder;
  /** Those in force: SIGHUP may put others in their place. A request keeps what it began with. */
  live: { readonly current: ProxySettings };
  /** False before the database is there, and when draining is over. */
  isServing: () => boolean;
  /**
   * Left on what is forwarded (`CDN-Loop`, RFC 8586), to be known again should it come back. Not `Via`: because of that
   * some servers leave out compression and other things that they would give the client itself.
   */
  loopMark: string;
}

export type ProxyHandler = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean) => void;

export interface Proxy {
  handle: ProxyHandler;
  /** Refuses the request of a response not begun. @returns false when it is none of the proxy's. */
  refuse(res: ServerResponse, refusal: Refusal): boolean;
  /** Ends whatever is in flight. */
  cutAll(): void;
}

export function createProxy(options: ProxyOptions): Proxy {
  const inFlight = new InFlight<Exchange>();
  const watches = new Watches(options.clock);
  return {
    handle(req, res, expectsContinue) {
      const exchange = new Exchange(options, req, res, expectsContinue, inFlight, watches);
      inFlight.add(exchange);
      void exchange.run();
    },
    refuse(res, refusal) {
      const exchange = inFlight.all().find((each) => each.answers(res));
      exchange?.refuseUnreadable(refusal);
      return exchange !== undefined;
    },
    cutAll() {
      for (const exchange of inFlight.all()) exchange.drain();
    },
  };
}

export const isProxied = (target: string) => /^\/v1(?:[/?#]|$)/.test(target);

/** What every refusal on /v1 carries. */
export const REFUSAL_HEADERS = { 'X-PROXY-CACHE': 'miss' };

const sendWaiting = (exchange: Exchange) => {
  exchange.sendWaiting();
};

/** One request and its answer. */
class Exchange extends Member implements Receiver, Turns {
  readonly #settings: ProxySettings;
  readonly #record: RequestRecord;
  readonly #watch: Watch;
  #patience: Patience | null = null;
  #isClientsTurn = false;
  #place: Place | null = null;
  #forwarding: Forwarding | null = null;
  #forwardedAtMs = 0;
  #isHeadWaiting = false;
  #firstPiece: Buffer | null = null;

  constructor(
    private readonly options: ProxyOptions,
    private readonly req: IncomingMessage,
    private readonly res: ServerResponse,
    private readonly expectsContinue: boolean,
    private readonly inFlight: InFlight<Exchange>,
    watches: Watches,
  ) {
    super();
    this.#settings = options.live.current;
    this.#record = new RequestRecord(options, req);
    this.#watch = new Watch(watches);
    res.on('close', () => {
      this.#close();
    });
  }

  // It waits only where there is something to wait for: each `await` costs, and lets others in between.
  async run(): Promise<void> {
    try {
      const fields = checkShape(this.req, this.#settings.maxRequestBytes);
      this.#record.identify(fields.requestId);
      if (fields.cdnLoop?.includes(this.options.loopMark)) throw loopDetected();
      if (this.expectsContinue) checkExpectation(this.req);
      if (this.req.method === 'OPTIONS') {
        this.#answerOptions();
        return;
      }
      const counting = this.#countAddress(fields);
      if (counting) await this.#stay(counting);
      const admitted = this.#admit(fields);
      const pass = admitted instanceof Promise ? await admitted : admitted;
      this.#enter(pass);
      const countingAll = this.options.rateLimits.countValid();
      if (countingAll) await this.#stay(countingAll);
      this.#read(pass, fields);
    } catch (error) {
      this.#refuse(error);
    }
  }

  async #spend(pass: Pass, fields: RequestFields, body: RequestBody): Promise<void> {
    try {
      this.#place = this.options.forwarder.reserve() ?? null;
      if (this.#place) await this.#place.reached;
      try {
        // Gone or refused while its body arrived or it waited for a connection: nothing is spent on it any more.
        if (this.#isOver()) throw new ClientGone();
        // Without an `await` when there is nothing to wait for: then nothing comes between the checks and the forwarding.
        const waitingForUnit = this.options.admission.draw(pass);
        if (waitingForUnit) await waitingForUnit;
        if (pass.ended) throw pass.ended;
      } catch (error) {
        this.options.forwarder.release();
        throw error;
      }
      this.#forward(pass, fields, body);
    } catch (error) {
      this.#refuse(error);
    }
  }

  #countAddress({ forwardedFor }: RequestFields): Promise<void> | undefined {
    const { rateLimits, addressOf } = this.options;
    // Otherwise it need not be found out.
    return rateLimits.countsAddresses ? rateLimits.countAddress(addressOf(this.req.socket, forwardedFor)) : undefined;
  }

  /** Waits, and goes on only if nothing ended the request meanwhile. */
  async #stay(waiting: Promise<void>): Promise<void> {
    await waiting;
    if (this.#isOver()) throw new ClientGone();
  }

  #admit(fields: RequestFields): Pass | Promise<Pass> {
    if (!this.options.isServing()) throw unavailable();
    const presented = presentedIn(fields.authorization, this.req.socket);
    if (presented === null) throw unauthorized();
    return this.options.admission.admit(presented.secret, presented.digest);
  }

  #enter(pass: Pass): void {
    this.#record.pass = pass;
    pass.onEnded = (refusal) => {
      this.#cut(refusal);
    };
    // The client left while the database was asked: `close` found no pass to hand back.
    if (this.res.closed) {
      this.options.admission.finish(pass);
      throw new ClientGone();
    }
    // Revoked while the answer of admission was on its way: nobody was there to be told.
    if (pass.ended) {
      this.#cut(pass.ended);
      throw pass.ended;
    }
  }

  /** A small body is held before anything is spent; a large one streams once it has begun. */
  #read(pass: Pass, fields: RequestFields): void {
    const spend = (body: RequestBody) => void this.#spend(pass, fields, body);
    if (!hasBody(fields)) {
      spend(null);
      return;
    }
    if (this.expectsContinue) this.res.writeContinue();
    const { clientBodyTimeoutMs, maxRequestBytes } = this.#settings;
    this.#patience = new Patience(clientBodyTimeoutMs, this.options.clock);
    if (isHeld(fields)) holdBody(this.req, this, spend);
    else {
      streamBody(this.req, maxRequestBytes, this).then(spend, (error: unknown) => {
        this.#refuse(error);
      });
    }
  }

  waitForClient(): void {
    this.#isClientsTurn = true;
    this.#watch.expect(this.#patience?.begin() ?? 0, this.#onSilence);
  }

  received(bytes: number): void {
    this.#patience?.received(bytes);
  }

  waitForUpstream(nowMs?: number): void {
    this.#isClientsTurn = false;
    this.#watch.expect(this.#settings.requestTimeoutMs, this.#onSilence, nowMs);
  }

  waitForNobody(): void {
    this.#watch.rest();
  }

  #forward(pass: Pass, fields: RequestFields, body: RequestBody): void {
    const { forwarder, clock, loopMark } = this.options;
    this.#forwardedAtMs = clock.monotonic();
    this.waitForUpstream(this.#forwardedAtMs);
    this.#forwarding = forwarder.forward(
      {
        method: this.req.method ?? 'GET',
        target: this.req.url ?? '/',
        headers: upstreamRequestHeaders(fields, {
          upstreamKey: pass.upstreamKey,
          requestId: this.#record.requestId,
          loopMark,
        }),
        body,
      },
      this,
    );
  }

  // ---- the upstream's answer

  head(status: number, rawHeaders: readonly Buffer[]): void {
    const pass = this.#record.pass;
    if (!pass) throw new Error('an answer without a pass');
    const now = this.options.clock.monotonic();
    this.waitForUpstream(now);
    const { list, upstreamRequestId } = clientResponseHeaders(rawHeaders, {
      status,
      requestId: this.#record.requestId,
      upstreamMs: now - this.#forwardedAtMs,
      proxyMs: this.#forwardedAtMs - this.#record.startedAtMs,
      expiresAt: pass.expiresAt,
      remaining: pass.remaining,
      cors: corsFields(this.#settings, this.req),
    });
    this.#record.upstreamRequestId = recordedId(upstreamRequestId, pass.upstreamKey);
    // The reason phrase is ours: the upstream's may hold what breaks a status line.
    this.res.writeHead(status, list);
    this.#record.status = status;
    // It goes out together with what arrived with it, and does not wait for what takes its time.
    this.#isHeadWaiting = true;
    process.nextTick(sendWaiting, this);
  }

  data(piece: Buffer): boolean {
    if (this.#isHeadWaiting && this.#firstPiece === null) {
      this.#firstPiece = piece;
      return true;
    }
    this.#watch.touch();
    this.sendWaiting();
    if (this.res.write(piece)) return true;
    this.res.once('drain', () => {
      this.#watch.touch();
      this.#forwarding?.resume();
    });
    return false;
  }

  end(): void {
    const piece = this.#firstPiece;
    this.#record.answered();
    if (!this.req.complete) closeGently(this.req);
    if (this.#isHeadWaiting && piece !== null) {
      this.#isHeadWaiting = false;
      this.#firstPiece = null;
      this.res.end(piece); // One write with the head.
    } else {
      this.sendWaiting();
      this.res.end();
    }
  }

  /** Sends the head, and the piece that arrived with it, if they have not gone out yet. */
  sendWaiting(): void {
    if (!this.#isHeadWaiting || this.res.closed) return;
    const piece = this.#firstPiece;
    this.#isHeadWaiting = false;
    this.#firstPiece = null;
    if (piece === null) this.res.flushHeaders();
    else this.res.write(piece); // Should it fill the client's buffer, the next piece will find that out.
  }

  fail(refusal: Refusal): void {
    if (this.res.headersSent) {
      this.#record.cause = refusal.cause;
      this.#destroy(refusal.kind === 'upstream_timeout' ? 'timeout' : 'truncated');
    } else {
      this.#refuse(refusal);
    }
  }

  readonly #onSilence = () => {
    if (this.#isClientsTurn) this.#refuse(new Refusal('request_timeout', 'the request body did not arrive in time'));
    // If it is the client that takes nothing, nobody is there to be told.
    else if (this.res.writableNeedDrain) this.#destroy('client_closed');
    else this.fail(new Refusal('upstream_timeout', 'upstream timed out'));
  };

  // ---- the other ends

  answers(res: ServerResponse): boolean {
    return this.res === res;
  }

  #isOver(): boolean {
    return this.#record.outcome !== null || this.res.closed;
  }

  /** The rest of the request cannot be read. */
  refuseUnreadable(refusal: Refusal): void {
    this.#refuse(refusal);
  }

  #refuse(error: unknown): void {
    if (this.#isOver() || error instanceof ClientGone) return;
    const refusal = asRefusal(error);
    this.#record.refused(refusal);
    this.#forwarding?.abort();
    // A client that was not told to go on may or may not send its body: what follows cannot be told apart.
    if (this.expectsContinue) this.res.shouldKeepAlive = false;
    sendProblem(this.res, refusal, this.#record.requestId, {
      ...REFUSAL_HEADERS,
      ...corsFields(this.#settings, this.req),
    });
  }

  /** The token was revoked, or its project deactivated. */
  #cut(refusal: Refusal): void {
    if (this.res.headersSent) this.#destroy('revoked');
    else this.#refuse(refusal);
    this.#record.outcome = 'revoked';
  }

  /** The daemon stops and cannot wait any longer. */
  drain(): void {
    if (this.res.headersSent) this.#destroy('drained');
    else this.#refuse(unavailable());
    this.#record.outcome = 'drained';
  }

  #destroy(outcome: Outcome): void {
    this.#record.outcome ??= outcome;
    this.#forwarding?.abort();
    cut(this.res);
  }

  #answerOptions(): void {
    this.#record.outcome = 'ok';
    this.#record.status = 204;
    const cors = preflightFields(this.#settings, this.req);
    this.res.writeHead(204, { ...REFUSAL_HEADERS, ...cors, 'X-Request-ID': this.#record.requestId });
    this.res.end();
  }

  /** The answer went out whole, or the connection is gone. */
  #close(): void {
    this.inFlight.delete(this);
    this.#watch.end();
    this.#place?.leave();
    // Node says "finished" too when the rest of the answer was thrown away with a connection that the client reset.
    const isSent = this.res.writableFinished && !this.req.socket.destroyed;
    if (!isSent) this.#forwarding?.abort();
    if (!isSent && this.#record.outcome === 'ok') this.#record.outcome = 'client_closed';
    linger(this.req, this.options.clock);
    this.#record.end();
  }
}
