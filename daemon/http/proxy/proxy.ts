/**
 * /v1: the request's way.
 *
 *   1 shape        method, target, framing, headers, declared length       400 405 413 414 417 431 501 505 508
 *   2 rate limit   of the client's address                                 429 503
 *   3 credential   Authorization: Bearer sk-wt-…, and none in the target   401
 *   4 admission    exists & active? expired? project active? uses left?    401 401 403 429
 *   5 rate limit   of all requests with a valid token                      429 503
 *   6 cache        may it be answered from there? hit: replay it          504
 *   7 forward      draw one use, swap the key, stream both ways            408 413 429 502 503 504
 *   8 afterwards   one RequestEnded value for all who keep a record
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Live, Reloadable, Settings } from '../../../config/settings.js';
import type { Pass } from '../../core/account.js';
import type { Admission } from '../../core/admission.js';
import type { Fresh, ResponseCache } from '../../core/cache/response-cache.js';
import { isHeldBy } from '../../core/cache/caching.js';
import type { ContentReader, ContentReaders } from '../../core/content/reader.js';
import type { Outcome } from '../../core/events.js';
import { InFlight, Member } from '../../core/in-flight.js';
import type { KeptAnswer } from '../../core/ports.js';
import type { RateLimits } from '../../core/rate-limit.js';
import { loopDetected, Refusal, unauthorized, unavailable } from '../../core/refusal.js';
import type { Visit, Visitor } from '../../core/visit.js';
import { Answering, REFUSAL_HEADERS } from './answering.js';
import { ClientGone, gatherBody, hasBody, holdBody, isHeld, type RequestBody, streamBody } from '../body.js';
import type { CorsSettings } from '../cors.js';
import { checkNoCredentialIn, presentedIn } from '../credentials.js';
import { cut, linger } from '../endings.js';
import { type RequestFields, withoutTokens } from '../fields.js';
import type { HeldBodies, HeldBody } from '../held-bodies.js';
import { Filling } from './filling.js';
import type { Forwarder, Forwarding, Place, Receiver } from './forward.js';
import { upstreamRequestHeaders } from './headers.js';
import { asRefusal } from '../problems.js';
import { type RecordOptions, recordUnread, RequestRecord, type Unread } from './record.js';
import { isSoughtByBody, isWrite, LARGEST_LOOKED_UP, visitTo } from './seeking.js';
import { checkExpectation, checkShape } from '../shape.js';
import { Turn } from './turn.js';
import type { Untaken } from '../untaken.js';
import { Watches } from './watch.js';
import type { WordingSettings } from '../wording.js';

type ProxySettings = CorsSettings & WordingSettings & Pick<Reloadable, 'requestTimeoutMs' | 'clientBodyTimeoutMs'>;

export interface ProxyOptions extends RecordOptions, Pick<Settings, 'maxRequestBytes'> {
  admission: Admission;
  rateLimits: Pick<RateLimits, 'countsAddresses' | 'countAddress' | 'countValid'>;
  /** Null when it is off. */
  cache: ResponseCache | null;
  contents: Pick<ContentReaders, 'begin'>;
  /** Watches over the answers that are not the upstream's: those are watched while they come. */
  untaken: Pick<Untaken, 'watch'>;
  bodies: HeldBodies;
  forwarder: Forwarder;
  /** Those in force: SIGHUP may put others in their place. A request keeps what it began with. */
  live: Live<keyof ProxySettings>;
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
  /** Leaves a record of what was refused before there was a request. */
  recordUnread(socket: Socket, refusal: Refusal, unread: Unread): void;
  /** How many requests are not over. */
  readonly inFlight: number;
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

/** One request and its answer. */
class Exchange extends Member implements Receiver, Visitor {
  readonly #settings: ProxySettings;
  readonly #record: RequestRecord;
  readonly #turn: Turn;
  readonly #answering: Answering;
  #place: Place | null = null;
  #visit: Visit | null = null;
  #filling: Filling | null = null;
  #forwarding: Forwarding | null = null;
  /** What is asked of the upstream, once it is all there. */
  #question: { pass: Pass; fields: RequestFields; body: RequestBody } | null = null;
  /** What is held of its body. */
  #held: HeldBody | null = null;
  /** Out of the cache. */
  #sent: KeptAnswer | null = null;
  /** A change was sent of which nobody knows yet whether it was made. */
  #mayHaveChanged = false;

  constructor(
    private readonly options: ProxyOptions,
    private readonly req: IncomingMessage,
    private readonly res: ServerResponse,
    private readonly expectsContinue: boolean,
    private readonly inFlight: InFlight<Exchange>,
    private readonly watches: Watches,
  ) {
    super();
    this.#settings = options.live.current;
    this.#record = new RequestRecord(options, req);
    this.#turn = new Turn(watches, this.#settings, this);
    this.#answering = new Answering(req, res, this.#record, this.#settings, this.#onDrain);
    res.on('close', () => {
      this.#close();
    });
  }

  // It waits only where there is something to wait for: each `await` costs, and lets others in between.
  async run(): Promise<void> {
    try {
      const fields = checkShape(this.req, this.options.maxRequestBytes);
      this.#record.identify(fields);
      if (fields.cdnLoop?.includes(this.options.loopMark)) throw loopDetected();
      if (this.expectsContinue) checkExpectation(this.req);
      if (this.req.method === 'OPTIONS') {
        this.#answering.options();
        this.options.untaken.watch(this.res);
        return;
      }
      const counting = this.#countAddress();
      if (counting) await this.#stay(counting);
      const admitted = this.#admit(fields);
      const pass = admitted instanceof Promise ? await admitted : admitted;
      this.#enter(pass);
      const countingAll = this.options.rateLimits.countValid();
      if (countingAll) await this.#stay(countingAll);
      this.#read(pass, withoutTokens(fields));
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

  #countAddress(): Promise<void> | undefined {
    const { rateLimits } = this.options;
    return rateLimits.countsAddresses ? rateLimits.countAddress(this.#record.clientIp) : undefined;
  }

  /** Waits, and goes on only if nothing ended the request meanwhile. */
  async #stay(waiting: Promise<void>): Promise<void> {
    await waiting;
    if (this.#isOver()) throw new ClientGone();
  }

  #admit(fields: RequestFields): Pass | Promise<Pass> {
    checkNoCredentialIn(this.req.url ?? '');
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
    const seek = (body: RequestBody) => {
      this.#seek(pass, fields, body);
    };
    if (!hasBody(fields)) {
      seek(null);
      return;
    }
    if (this.expectsContinue) this.res.writeContinue();
    this.#turn.beginBody();
    const held = (this.#held = this.options.bodies.open(() => {
      // To read on for a while, as behind other early answers, would take the memory that is wanted.
      this.res.once('finish', () => this.req.socket.destroy());
      this.clientSilent();
    }));
    if (isHeld(fields)) {
      holdBody(this.req, held, this.#turn, seek);
      return;
    }
    const streaming = streamBody(this.req, this.options.maxRequestBytes, this.#turn);
    const isGathered = this.options.cache !== null && isSoughtByBody(this.req, fields);
    const reading = isGathered ? streaming.then((body) => gatherBody(body, LARGEST_LOOKED_UP, held)) : streaming;
    reading.then(seek, (error: unknown) => {
      this.#refuse(error);
    });
  }

  // ---- the cache, and what it says

  #seek(pass: Pass, fields: RequestFields, body: RequestBody): void {
    if (this.#isOver()) return; // It was refused while its body arrived.
    const { cache, contents } = this.options;
    this.#question = { pass, fields, body: this.#readBy(contents.begin(), body) };
    this.#visit = cache && visitTo(cache, this.req, this.#question, this);
    if (this.#visit) this.#visit.begin();
    else this.ask();
  }

  #readBy(content: ContentReader, body: RequestBody): RequestBody {
    this.#record.content = content;
    if (body === null) return null;
    if (!Buffer.isBuffer(body)) return content.askedInPieces(body);
    content.asked(body);
    return body;
  }

  wait(): void {
    this.#turn.waitForAnother(() => this.#visit?.stopWaiting());
  }

  hurry(): void {
    this.#forwarding?.resume();
  }

  ask(): void {
    if (this.#isOver() || !this.#question) return;
    const { pass, fields, body } = this.#question;
    this.#turn.waitForNobody();
    void this.#spend(pass, fields, body);
  }

  replay(fresh: Fresh): void {
    if (this.#isOver() || !this.#question) return;
    const { pass } = this.#question;
    this.#turn.waitForNobody();
    try {
      const confirming = this.options.admission.confirm(pass);
      if (confirming === undefined) {
        this.#sendKept(fresh, pass);
        return;
      }
      const sending = this.#stay(confirming).then(() => {
        this.#sendKept(fresh, pass);
      });
      sending.catch((error: unknown) => {
        this.#refuse(error);
      });
    } catch (error) {
      this.#refuse(error);
    }
  }

  #sendKept(fresh: Fresh, pass: Pass): void {
    const { cache, admission } = this.options;
    if (!cache) return;
    const ages = cache.agesOf(fresh);
    if (ages.freshForMs <= 0) {
      this.ask(); // It was waited for too long.
      return;
    }
    admission.countHit(pass);
    cache.hits += 1;
    cache.room.send(fresh.answer);
    this.#sent = fresh.answer;
    const { clock } = this.options;
    const condition = this.#visit?.condition ?? null;
    const isHeld = condition !== null && isHeldBy(condition, fresh.answer, clock.now());
    this.#answering.replay(pass, fresh.answer, ages, isHeld, clock.monotonic());
    this.options.untaken.watch(this.res, true);
  }

  #forward(pass: Pass, fields: RequestFields, body: RequestBody): void {
    const { forwarder, clock, loopMark, admission, cache } = this.options;
    const { requestTimeoutMs } = this.#settings;
    this.#mayHaveChanged = cache !== null && isWrite(this.req);
    const nowMs = clock.monotonic();
    this.#record.forwardedAtMs = nowMs;
    this.#turn.waitForUpstream(nowMs);
    const headers = upstreamRequestHeaders(fields, {
      upstreamKey: pass.upstreamKey,
      requestId: this.#record.requestId,
      loopMark,
    });
    if (this.#visit?.isOfUse) {
      headers.push(...this.#visit.question);
      this.#filling = new Filling(this, this.#visit, pass, { admission, watches: this.watches, requestTimeoutMs });
    }
    const request = { method: this.req.method ?? 'GET', target: this.req.url ?? '/', headers, body };
    this.#forwarding = forwarder.forward(request, this.#filling ?? this);
    this.#filling?.begun(this.#forwarding);
    this.#question = null;
    this.#held?.release();
  }

  // ---- the upstream's answer

  head(status: number, rawHeaders: readonly Buffer[]): void {
    const pass = this.#record.pass;
    if (!pass) throw new Error('an answer without a pass');
    const nowMs = this.options.clock.monotonic();
    this.#turn.waitForUpstream(nowMs);
    if (this.#filling?.isConfirmation) this.#record.content?.repeated();
    this.#answering.head(pass, status, rawHeaders, nowMs);
    if (this.#mayHaveChanged) {
      this.#mayHaveChanged = false;
      // Before the client hears of it.
      if (status < 400) this.options.cache?.wrote(pass.projectId, this.req.url ?? '/');
    }
  }

  data(piece: Buffer): boolean {
    this.#turn.touch();
    return this.#answering.data(piece);
  }

  readonly #onDrain = () => {
    this.#turn.touch();
    this.#forwarding?.resume();
  };

  end(): void {
    this.#answering.end();
  }

  fail(refusal: Refusal): void {
    if (this.res.headersSent) {
      this.#record.cause = refusal.cause;
      if (refusal.kind === 'upstream_timeout') this.#destroy('timeout', refusal);
      else this.#destroy('truncated'); // As the client would see it without us.
    } else {
      this.#refuse(refusal);
    }
  }

  clientSilent(): void {
    this.#refuse(new Refusal('request_timeout', 'the request body did not arrive in time'));
  }

  upstreamSilent(): void {
    // If it is the client that takes nothing, nobody is there to be told.
    if (this.res.writableNeedDrain) this.#destroy('client_closed');
    else (this.#filling ?? this).fail(new Refusal('upstream_timeout', 'upstream timed out'));
  }

  // ---- the other ends

  answers(res: ServerResponse): boolean {
    return this.res === res;
  }

  #isOver(): boolean {
    return this.#record.outcome !== null || this.res.closed;
  }

  /** From without: its rest cannot be read, or it wants what is in the cache alone. */
  refuse(refusal: Refusal): void {
    this.#refuse(refusal);
  }

  #refuse(error: unknown): void {
    if (this.#isOver() || error instanceof ClientGone) return;
    const refusal = asRefusal(error);
    this.#record.refused(refusal);
    this.#callOff();
    // A client that was not told to go on may or may not send its body: what follows cannot be told apart.
    if (this.expectsContinue) this.res.shouldKeepAlive = false;
    this.#answering.refuse(refusal);
    this.options.untaken.watch(this.res);
  }

  /** The token was revoked, or its project deactivated. */
  #cut(refusal: Refusal): void {
    if (this.res.headersSent) this.#destroy('revoked', refusal);
    else this.#refuse(refusal);
    this.#record.outcome = 'revoked';
  }

  /** The daemon stops and cannot wait any longer. */
  drain(): void {
    if (this.res.headersSent) this.#destroy('drained', unavailable());
    else this.#refuse(unavailable());
    this.#record.outcome = 'drained';
  }

  /** @param why for the client, if it is us who end it. */
  #destroy(outcome: Outcome, why?: Refusal): void {
    this.#record.outcome ??= outcome;
    if (outcome === 'client_closed') this.#leave();
    else this.#callOff();
    if (why) this.#answering.sayWhy(why);
    cut(this.res);
  }

  /** The client has left: what others wait for goes on. */
  #leave(): void {
    if (!this.#filling?.leave()) this.#callOff();
  }

  /** Nothing of this request goes on. Who waited for its answer gets another's. */
  #callOff(): void {
    this.#forwarding?.abort();
    this.#visit?.quit();
  }

  /** The answer went out whole, or the connection is gone. */
  #close(): void {
    this.inFlight.delete(this);
    this.#held?.release();
    this.#turn.end();
    this.#place?.leave();
    // Node says "finished" too when the rest of the answer was thrown away with a connection that the client reset.
    const isSent = this.res.writableFinished && !this.req.socket.destroyed;
    if (!isSent) this.#leave();
    if (this.#sent) this.options.cache?.room.sent(this.#sent);
    // It may have been heard, whether or not we heard of it.
    if (this.#mayHaveChanged) this.options.cache?.wrote(this.#record.pass?.projectId ?? '', this.req.url ?? '/');
    if (!isSent) this.#record.leftEarly();
    linger(this.req, this.options.clock);
    this.#record.bytesIn = this.#turn.receivedBytes;
    this.#record.end();
  }
}
