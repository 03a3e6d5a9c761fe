/**
 * WebSocket upgrades on /v1. A handshake goes the way of any request (proxy.ts) and costs one use when it is forwarded. If
 * the upstream agrees, the two connections are one until either ends; any other answer passes through, and closes.
 *
 *   1 shape        as for any request                                      400 414 431 508
 *   2 rate limit   of the client's address                                 429 503
 *   3 credential   Authorization: Bearer sk-wt-…, or a subprotocol         401
 *   4 admission                                                            401 401 403 429
 *   5 rate limit   of all requests with a valid token                      429 503
 *   7 forward      draw one use, swap the key, join the connections        429 502 503 504
 *   8 afterwards   one RequestEnded, when the connection is over
 *
 * `Origin` is not looked at: it guards against pages that use a credential the browser keeps, and here there is none.
 * Nor does the upstream get it, to whom we are no page.
 */
import { type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Live, Reloadable } from '../../../config/settings.js';
import type { Pass } from '../../core/account.js';
import type { Admission } from '../../core/admission.js';
import { RealtimeReader } from '../../core/content/realtime.js';
import type { Outcome } from '../../core/events.js';
import type { RateLimits } from '../../core/rate-limit.js';
import { loopDetected, Refusal, tokenExpired, unauthorized, unavailable } from '../../core/refusal.js';
import { REFUSAL_HEADERS } from './answering.js';
import { FrameBoundary } from './boundaries.js';
import { type CorsFields, corsFields, type CorsSettings } from '../cors.js';
import { bearerOf, checkNoCredentialIn, type Subprotocols, subprotocolsOf } from '../credentials.js';
import { endGently, LINGER_MS } from '../endings.js';
import { closeFrame } from './farewell.js';
import { type RequestFields, withoutTokens } from '../fields.js';
import { type HeldBodies, type HeldBody, PIECE_OVERHEAD_BYTES } from '../held-bodies.js';
import type { Forwarder, Place } from './forward.js';
import { handshakeForClient, handshakeForUpstream } from './handshake.js';
import { clientResponseHeaders, recordedId } from './headers.js';
import { type ForwardUpgrade, malformedAnswer, type UpgradeReceiver } from './http-proxy.js';
import { asRefusal, sendProblem } from '../problems.js';
import { type RecordOptions, RequestRecord } from './record.js';
import { checkShape } from '../shape.js';
import type { Untaken } from '../untaken.js';
import { Watch, Watches } from './watch.js';
import { wordingFor, type WordingSettings } from '../wording.js';

type UpgradeSettings = CorsSettings &
  WordingSettings &
  Pick<Reloadable, 'requestTimeoutMs' | 'upstreamConnectTimeoutMs' | 'websocketIdleTimeoutMs'>;

export interface UpgradeOptions extends RecordOptions {
  admission: Admission;
  rateLimits: Pick<RateLimits, 'countsAddresses' | 'countAddress' | 'countValid'>;
  /** Its connections to the upstream are counted together with these. */
  connections: Pick<Forwarder, 'reserve' | 'release'>;
  /** Watches over refusals. Other answers are watched while they come. */
  untaken: Pick<Untaken, 'watch'>;
  /** What clients send before their answer is held together with the bodies of other requests. */
  bodies: HeldBodies;
  forward: ForwardUpgrade;
  /** Those in force: SIGHUP may put others in their place. A connection keeps what it began with. */
  live: Live<keyof UpgradeSettings>;
  /** False before the database is there, and when draining is over. */
  isServing: () => boolean;
  /** As in proxy.ts. */
  loopMark: string;
}

export interface Upgrades {
  /** @param early what the client sent behind its handshake. */
  handle(req: IncomingMessage, socket: Socket, early: Buffer): void;
  /** How many are being joined or are connected. */
  readonly inFlight: number;
  /** Ends whatever is connected. */
  cutAll(): void;
}

export function createUpgrades(options: UpgradeOptions): Upgrades {
  const open = new Set<Upgrade>();
  const watches = new Watches(options.clock);
  return {
    handle(req, socket, early) {
      const upgrade = new Upgrade(options, req, socket, watches, () => open.delete(upgrade));
      open.add(upgrade);
      void upgrade.run(early);
    },
    get inFlight() {
      return open.size;
    },
    cutAll() {
      for (const upgrade of open) upgrade.drain();
    },
  };
}

// A client is to wait for the answer before it says more.
const MOST_EARLY_BYTES = 64 * 1024;
// How long an upstream may be silent whose client has ended its side, and may be gone.
const HALF_CLOSED_MS = 10_000;
// A connection ends so much late at most if the clock on the wall is set forward.
const LOOK_AT_CLOCK_MS = 60_000;

/** One client connection, from its handshake to its end. */
class Upgrade implements UpgradeReceiver {
  readonly #settings: UpgradeSettings;
  readonly #record: RequestRecord;
  readonly #cors: CorsFields;
  readonly #subprotocols: Subprotocols;
  readonly #watch: Watch;
  /** Writes what is answered in place of a 101. */
  readonly #res: ServerResponse;
  #early: Buffer[] = [];
  #earlyBytes = 0;
  readonly #held: HeldBody;
  #place: Place | null = null;
  #holdsConnection = false;
  #request: ClientRequest | null = null;
  /** The upstream's connection, once it is joined with the client's. */
  #upstream: Socket | null = null;
  /** Of what goes to the client, once they are joined. */
  #frames: FrameBoundary | null = null;
  #isOver = false;
  #cancelExpiry: () => void = () => undefined;

  constructor(
    private readonly options: UpgradeOptions,
    private readonly req: IncomingMessage,
    private readonly socket: Socket,
    watches: Watches,
    private readonly onClose: () => void,
  ) {
    this.#settings = options.live.current;
    this.#cors = corsFields(this.#settings, req);
    this.#subprotocols = subprotocolsOf(req.headers['sec-websocket-protocol']);
    this.#record = new RequestRecord(options, req);
    this.#record.realtime = new RealtimeReader(req.url ?? '');
    this.#watch = new Watch(watches);
    this.#held = options.bodies.open(() => {
      this.#refuse(unavailable());
    });
    this.#res = this.#response();
    socket.on('error', (error) => {
      this.#record.cause ??= error;
      this.#record.outcome ??= 'client_closed';
    });
    socket.on('end', () => {
      if (this.#isOver) return;
      if (this.#upstream) this.#awaitUpstreamsEnd();
      else if (!this.#isDecided()) this.#destroy('client_closed');
    });
    socket.on('close', () => {
      this.#end();
      this.onClose();
    });
  }

  #response(): ServerResponse {
    const { req, socket } = this;
    const res = new ServerResponse(req);
    res.shouldKeepAlive = false;
    res.assignSocket(socket);
    // Node has let go of this connection: nobody else says so.
    socket.on('drain', () => res.emit('drain'));
    res.on('finish', () => {
      this.#record.answered();
      this.#end();
      endGently(socket, this.options.clock);
    });
    return res;
  }

  async run(early: Buffer): Promise<void> {
    try {
      this.socket.on('data', this.#keepEarly);
      this.#keepEarly(early);
      const fields = checkShape(this.req, 0);
      this.#record.identify(fields);
      if (fields.cdnLoop?.includes(this.options.loopMark)) throw loopDetected();
      await this.#countAddress();
      if (this.#isDecided()) return;
      const pass = await this.#admit(fields);
      if (this.#isDecided()) return;
      await this.options.rateLimits.countValid();
      if (!this.#isDecided()) await this.#forward(pass, withoutTokens(fields));
    } catch (error) {
      this.#refuse(error);
    }
  }

  /** What the client sends before it has its answer. If it were not read, nobody would notice that the client leaves. */
  readonly #keepEarly = (piece: Buffer) => {
    if (this.#record.status !== null || piece.length === 0) return;
    this.#earlyBytes += piece.length;
    if (this.#earlyBytes > MOST_EARLY_BYTES) {
      this.#refuse(new Refusal('malformed_request', 'too much was sent before the answer to the handshake'));
    } else if (this.#held.takes(piece.length + PIECE_OVERHEAD_BYTES)) this.#early.push(piece);
    else this.#refuse(unavailable());
  };

  #forgetEarly(): void {
    this.#early = [];
    this.#held.release();
  }

  async #countAddress(): Promise<void> {
    const { rateLimits } = this.options;
    if (rateLimits.countsAddresses) await rateLimits.countAddress(this.#record.clientIp);
  }

  async #admit({ authorization }: RequestFields): Promise<Pass> {
    const { admission, isServing } = this.options;
    checkNoCredentialIn(this.req.url ?? '');
    if (!isServing()) throw unavailable();
    const secret = authorization === undefined ? this.#subprotocols.credential : bearerOf(authorization);
    if (secret === null) throw unauthorized();
    const admitted = admission.admit(secret);
    const pass = admitted instanceof Promise ? await admitted : admitted;
    this.#record.pass = pass;
    pass.onEnded = (refusal) => {
      this.#cut(refusal);
    };
    // The client left while the database was asked, and there was no pass yet to hand back.
    if (this.#isOver) admission.finish(pass);
    // Revoked while the answer of admission was on its way: nobody was there to be told.
    if (pass.ended) this.#cut(pass.ended);
    return pass;
  }

  async #forward(pass: Pass, fields: RequestFields): Promise<void> {
    const { admission, connections, clock, forward } = this.options;
    this.#place = connections.reserve() ?? null;
    if (this.#place) await this.#place.reached;
    this.#holdsConnection = true;
    if (this.#isDecided()) {
      this.#giveConnectionBack();
      return;
    }
    // Without an `await` when there is nothing to wait for: then nothing comes between the checks and the forwarding.
    const waiting = admission.draw(pass);
    if (waiting) await waiting;
    if (pass.ended) throw pass.ended;
    if (this.#isDecided()) return;
    this.#record.forwardedAtMs = clock.monotonic();
    this.#watch.expect(this.#settings.upstreamConnectTimeoutMs, () => {
      this.fail(new Refusal('upstream_unreachable', 'upstream unreachable'));
    });
    try {
      const headers = handshakeForUpstream(fields, this.req, {
        upstreamKey: pass.upstreamKey,
        requestId: this.#record.requestId,
        loopMark: this.options.loopMark,
        offered: this.#subprotocols.offered,
      });
      this.#request = forward({ target: this.req.url ?? '/', headers, socket: this.socket }, this);
    } catch (error) {
      throw new Refusal('malformed_request', 'a header field or the target cannot be forwarded', { cause: error });
    }
  }

  // ---- the upstream's answer

  connected(): void {
    if (!this.#isDecided()) this.#watch.expect(this.#settings.requestTimeoutMs, this.#onSilence);
  }

  accepted(answer: IncomingMessage): OutgoingHttpHeaders {
    const { socket } = this;
    const headers = handshakeForClient(this.#clientHeaders(answer));
    this.#record.status = 101;
    this.#record.isStreamed = true;
    this.#res.detachSocket(socket);
    socket.off('data', this.#keepEarly).pause();
    // From here on the client's bytes are the upstream's, those first that came early.
    if (this.#earlyBytes > 0) socket.unshift(Buffer.concat(this.#early));
    this.#forgetEarly();
    socket.setDefaultEncoding('latin1'); // Header bytes stay what they are.
    return headers;
  }

  joined(upstream: Socket): void {
    const { socket } = this;
    this.#upstream = upstream;
    this.#frames = new FrameBoundary();
    this.#endWithToken();
    this.#watch.expect(this.#settings.websocketIdleTimeoutMs, () => {
      this.#destroy('timeout', new Refusal('request_timeout', 'both sides were silent for too long'));
    });
    socket.on('data', this.#onClientPiece);
    upstream.on('data', this.#onUpstreamPiece);
    upstream.on('close', () => {
      endGently(socket, this.options.clock);
    });
  }

  /**
   * A connection may go on for ever, and each of its messages is a request: it ends when its token expires. (An answer that
   * is streamed is one request, which was made in time: it goes on to its end.) The clock on the wall may be set while the
   * connection lasts, so it is asked again every so often.
   */
  #endWithToken(): void {
    const { pass } = this.#record;
    if (!pass || this.#isOver) return;
    const { clock } = this.options;
    const leftMs = pass.expiresAtMs - clock.now();
    if (leftMs <= 0) {
      this.#cut(tokenExpired());
      return;
    }
    this.#cancelExpiry = clock.after(Math.min(leftMs, LOOK_AT_CLOCK_MS), () => {
      this.#endWithToken();
    });
  }

  answered(answer: IncomingMessage): void {
    const res = this.#res;
    const { statusCode: status = 0 } = answer;
    if (status === 401) {
      // To our key. The upstream's text can quote the key, so not a byte of it goes on.
      this.#refuse(new Refusal('upstream_key_rejected', "upstream rejected the project's key"));
      return;
    }
    this.#forgetEarly();
    try {
      res.writeHead(status, this.#clientHeaders(answer)).flushHeaders();
    } catch (error) {
      this.#refuse(malformedAnswer(error));
      return;
    }
    this.#record.status = status;
    this.#watch.expect(this.#settings.requestTimeoutMs, this.#onSilence);
    answer.on('data', (piece: Buffer) => {
      this.#onAnswerPiece(piece);
      if (res.write(piece)) return;
      answer.pause();
      res.once('drain', () => {
        this.#watch.touch();
        answer.resume();
      });
    });
    answer.on('end', () => res.end());
    answer.on('error', (error) => {
      this.fail(malformedAnswer(error));
    });
  }

  /**
   * @returns names and values in turn.
   * @throws when the answer cannot be passed on.
   */
  #clientHeaders(answer: IncomingMessage): string[] {
    const pass = this.#record.pass;
    if (!pass) throw new Error('an answer without a pass');
    const raw = answer.rawHeaders.map((text) => Buffer.from(text, 'latin1'));
    const { startedAtMs } = this.#record;
    const nowMs = this.options.clock.monotonic();
    const forwardedAtMs = this.#record.forwardedAtMs ?? nowMs;
    const { list, upstreamRequestId } = clientResponseHeaders(raw, {
      status: answer.statusCode ?? 0,
      requestId: this.#record.requestId,
      upstreamMs: nowMs - forwardedAtMs,
      proxyMs: forwardedAtMs - startedAtMs,
      expiresAt: pass.expiresAt,
      remaining: pass.remaining,
      cors: this.#cors,
    });
    this.#record.answeredAtMs = nowMs;
    this.#record.upstreamRequestId = recordedId(upstreamRequestId, pass.upstreamKey);
    return list;
  }

  fail(refusal: Refusal): void {
    if (this.#isDecided()) return;
    if (this.#record.status === null) {
      this.#refuse(refusal);
    } else {
      this.#record.cause ??= refusal.cause;
      this.#destroy(refusal.kind === 'upstream_timeout' ? 'timeout' : 'truncated');
    }
  }

  readonly #onClientPiece = (piece: Buffer) => {
    this.#record.bytesIn += piece.length;
    this.#watch.touch();
  };

  readonly #onAnswerPiece = (piece: Buffer) => {
    this.#record.bytesOut += piece.length;
    this.#frames?.read(piece);
    this.#watch.touch();
  };

  readonly #onUpstreamPiece = (piece: Buffer) => {
    this.#onAnswerPiece(piece);
    this.#record.realtime?.piece(piece);
  };

  readonly #onSilence = () => {
    // If it is the client that takes nothing, nobody is there to be told.
    if (this.#res.writableNeedDrain) this.#destroy('client_closed');
    else this.fail(new Refusal('upstream_timeout', 'upstream timed out'));
  };

  /** The client has said all it had to say. The upstream has heard so, and may finish. */
  #awaitUpstreamsEnd(): void {
    this.#watch.expect(Math.min(HALF_CLOSED_MS, this.#settings.websocketIdleTimeoutMs), () => {
      this.#destroy('ok');
    });
  }

  // ---- the other ends

  /** Gone, refused or cut: nothing is begun for it any more. */
  #isDecided(): boolean {
    return this.#record.outcome !== null;
  }

  #refuse(error: unknown): void {
    if (this.#isDecided()) return;
    const refusal = asRefusal(error);
    this.#record.refused(refusal);
    this.#forgetEarly();
    this.#watch.end();
    this.#request?.destroy();
    const headers = { ...REFUSAL_HEADERS, ...this.#cors };
    sendProblem(this.#res, refusal, this.#record.requestId, headers, wordingFor(refusal, this.req, this.#settings));
    this.options.untaken.watch(this.#res);
  }

  /** The token was revoked or has expired, or its project was deactivated. */
  #cut(refusal: Refusal): void {
    this.#cutShort('revoked', refusal);
  }

  /** The daemon stops and cannot wait any longer, not even for a client to close. */
  drain(): void {
    this.#cutShort('drained', unavailable());
    this.socket.end(() => this.socket.destroy());
  }

  #cutShort(outcome: Outcome, refusal: Refusal): void {
    if (this.#isDecided()) return;
    if (this.#record.status === null) this.#refuse(refusal);
    else this.#destroy(outcome, refusal);
    this.#record.outcome = outcome;
  }

  /** @param why for the client, if it is us who end it. */
  #destroy(outcome: Outcome, why?: Refusal): void {
    this.#record.outcome ??= outcome;
    this.#request?.destroy();
    this.#upstream?.destroy();
    if (why && this.#frames?.isReached) this.#close(why);
    else this.socket.destroy();
  }

  /** The upstream is gone at once; the client is told why, and given a moment to read it. */
  #close(why: Refusal): void {
    const { socket } = this;
    this.#end();
    this.#upstream?.unpipe(socket);
    socket.unpipe().off('data', this.#onClientPiece);
    socket.once(
      'close',
      // From now on, not from when it has gone out: a client that takes nothing would hold it for ever.
      this.options.clock.after(LINGER_MS, () => socket.destroy()),
    );
    socket.resume().end(closeFrame(why));
  }

  /** The answer went out whole, or the connection is gone. */
  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#cancelExpiry();
    // After a 101 it does not matter which side ends it.
    this.#record.outcome ??= this.#record.status === 101 ? 'ok' : 'client_closed';
    this.#forgetEarly();
    this.#watch.end();
    this.#place?.leave();
    this.#request?.destroy();
    this.#upstream?.destroy();
    this.#giveConnectionBack();
    this.#record.end();
  }

  #giveConnectionBack(): void {
    if (this.#holdsConnection) this.options.connections.release();
    this.#holdsConnection = false;
  }
}
