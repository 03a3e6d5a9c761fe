import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Pass } from '../../core/account.js';
import type { Outcome } from '../../core/events.js';
import { type InFlight, Member } from '../../core/in-flight.js';
import { Refusal, unavailable } from '../../core/refusal.js';
import { admit, type Applicant } from './admit.js';
import { Answering } from './answering.js';
import { ClientGone, type RequestBody } from '../body.js';
import { type Presented, presentedIn } from '../credentials.js';
import { cut, linger } from '../endings.js';
import type { RequestFields } from '../fields.js';
import { FromCache } from './from-cache.js';
import type { HeldBody } from '../held-bodies.js';
import type { ExchangeOptions, ExchangeSettings, OpenExchange } from './open-exchange.js';
import { asRefusal } from '../problems.js';
import { readBody } from './read-body.js';
import { RequestRecord } from './record.js';
import { visitFactsOf } from './seeking.js';
import { checkExpectation } from '../shape.js';
import { ToUpstream } from './to-upstream.js';
import { Turn } from './turn.js';
import type { Watches } from './watch.js';

/**
 * One request and its answer, from the first to the last. What it asks of the cache and of the upstream are parts of their own, and so
 * is what goes out to the client; here is the order of the steps, and how it may end.
 */
export class Exchange extends Member implements Applicant, OpenExchange {
  readonly options: ExchangeOptions;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly expectsContinue: boolean;
  readonly #inFlight: InFlight<Exchange>;
  readonly watches: Watches;
  readonly settings: ExchangeSettings;
  readonly record: RequestRecord;
  readonly turn: Turn;
  readonly answering: Answering;
  /** What is held of its body. */
  #held: HeldBody | null = null;
  #fromCache: FromCache | null = null;
  #toUpstream: ToUpstream | null = null;

  constructor(
    options: ExchangeOptions,
    req: IncomingMessage,
    res: ServerResponse,
    expectsContinue: boolean,
    inFlight: InFlight<Exchange>,
    watches: Watches,
  ) {
    super();
    this.options = options;
    this.req = req;
    this.res = res;
    this.expectsContinue = expectsContinue;
    this.#inFlight = inFlight;
    this.watches = watches;
    this.settings = options.live.current;
    this.record = new RequestRecord(options, req);
    this.turn = new Turn(watches, this.settings, this);
    this.answering = new Answering(req, res, this.record, this.settings, this.#onDrain);
    res.on('close', () => {
      this.#close();
    });
  }

  // ---- its way: admission, its body, then the cache or the upstream

  run(): void {
    void admit(this, this.options);
  }

  get mostBodyBytes(): number {
    return this.options.maxRequestBytes;
  }

  identified(): boolean {
    if (this.expectsContinue) checkExpectation(this.req);
    if (this.req.method !== 'OPTIONS') return true;
    this.answering.options();
    this.options.untaken.watch(this.res);
    return false;
  }

  presented({ authorization }: RequestFields): Presented | null {
    return presentedIn(authorization, this.req.socket);
  }

  admitted(pass: Pass, fields: RequestFields): void {
    this.#held = readBody(this, fields, (body) => {
      this.#seek(pass, fields, body);
    });
  }

  #seek(pass: Pass, fields: RequestFields, body: RequestBody): void {
    if (this.isOver()) return; // It was refused while its body arrived.
    const { cache } = this.options;
    const read = this.#readBy(body);
    this.#toUpstream = new ToUpstream(this, pass, fields, read, this.#held);
    const facts = cache && visitFactsOf(this.req, { pass, fields, body: read });
    if (facts) {
      this.#fromCache = new FromCache(this, cache, facts, pass, this.#toUpstream);
      this.#fromCache.begin();
    } else {
      this.#toUpstream.ask(null);
    }
  }

  /** What the body says is read along with it, for those who keep a record. */
  #readBy(body: RequestBody): RequestBody {
    const content = this.options.contents.begin();
    this.record.content = content;
    if (body === null) return null;
    if (!Buffer.isBuffer(body)) return content.askedInPieces(body);
    content.asked(body);
    return body;
  }

  readonly #onDrain = () => {
    this.turn.touch();
    this.#toUpstream?.resume();
  };

  clientSilent(): void {
    this.refuse(new Refusal('request_timeout', 'the request body did not arrive in time'));
  }

  upstreamSilent(): void {
    this.#toUpstream?.silent();
  }

  // ---- its ends

  isOver(): boolean {
    return this.record.outcome !== null || this.res.closed;
  }

  isClosed(): boolean {
    return this.res.closed;
  }

  /** Also from without: its rest cannot be read. */
  refuse(error: unknown): void {
    if (this.isOver() || error instanceof ClientGone) return;
    const refusal = asRefusal(error);
    this.record.refused(refusal);
    this.#callOff();
    // A client that was not told to go on may or may not send its body: what follows cannot be told apart.
    if (this.expectsContinue) this.res.shouldKeepAlive = false;
    this.answering.refuse(refusal);
    this.options.untaken.watch(this.res);
  }

  cut(refusal: Refusal): void {
    if (this.res.headersSent) this.destroy('revoked', refusal);
    else this.refuse(refusal);
    this.record.outcome = 'revoked';
  }

  /** The daemon stops and cannot wait any longer. */
  drain(): void {
    if (this.res.headersSent) this.destroy('drained', unavailable());
    else this.refuse(unavailable());
    this.record.outcome = 'drained';
  }

  destroy(outcome: Outcome, why?: Refusal): void {
    this.record.outcome ??= outcome;
    if (outcome === 'client_closed') this.#leave();
    else this.#callOff();
    if (why) this.answering.sayWhy(why);
    cut(this.res);
  }

  /** The client has left: what others wait for goes on. */
  #leave(): void {
    if (!this.#toUpstream?.leave()) this.#callOff();
  }

  /** Nothing of this request goes on. Who waited for its answer gets another's. */
  #callOff(): void {
    this.#toUpstream?.abort();
    this.#fromCache?.quit();
  }

  /** The answer went out whole, or the connection is gone. */
  #close(): void {
    this.#inFlight.delete(this);
    this.#held?.release();
    this.turn.end();
    // Node says "finished" too when the rest of the answer was thrown away with a connection that the client reset.
    const isSent = this.res.writableFinished && !this.req.socket.destroyed;
    if (!isSent) this.#leave();
    this.#fromCache?.close();
    this.#toUpstream?.close();
    if (!isSent) this.record.leftEarly();
    linger(this.req, this.options.clock);
    this.record.bytesIn = this.turn.receivedBytes;
    this.record.end();
  }
}
