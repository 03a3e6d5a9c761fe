import { type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Live, Reloadable } from '../../../config/settings.js';
import type { Pass } from '../../core/account.js';
import { RealtimeReader } from '../../core/content/realtime.js';
import type { Outcome } from '../../core/events.js';
import type { Clock } from '../../core/ports.js';
import { Refusal, unavailable } from '../../core/refusal.js';
import { digestOf } from '../../core/token.js';
import { admit, type Applicant, type EntryOptions } from './admit.js';
import { headersForClient, REFUSAL_HEADERS } from './answering.js';
import { ClientGone } from '../body.js';
import { type CorsFields, corsFields, type CorsSettings } from '../cors.js';
import { bearerOf, type Presented, type Subprotocols, subprotocolsOf } from '../credentials.js';
import { EarlyBytes } from './early-bytes.js';
import { endGently } from '../endings.js';
import type { RequestFields } from '../fields.js';
import type { Forwarder } from './forward.js';
import { handshakeForClient, handshakeForUpstream } from './handshake.js';
import { type ForwardUpgrade, malformedAnswer, type UpgradeReceiver } from './http-proxy.js';
import { Joined, type Joining } from './joined.js';
import { asRefusal, sendProblem } from '../problems.js';
import { RequestRecord } from './record.js';
import { type Spender, Spending } from './spend.js';
import { Watch, type Watches } from './watch.js';
import { wordingFor, type WordingSettings } from '../wording.js';

type UpgradeSettings = CorsSettings &
  WordingSettings &
  Pick<Reloadable, 'requestTimeoutMs' | 'upstreamConnectTimeoutMs' | 'websocketIdleTimeoutMs'>;

export interface UpgradeOptions extends EntryOptions {
  /** Its connections to the upstream are counted together with these. */
  connections: Pick<Forwarder, 'reserve' | 'release'>;
  forward: ForwardUpgrade;
  /** Those in force: SIGHUP may put others in their place. A connection keeps what it began with. */
  live: Live<keyof UpgradeSettings>;
}

/** One client connection, from its handshake to its end: the order of the steps, and how it may end. */
export class Upgrade implements Applicant, Spender, Joining, UpgradeReceiver {
  readonly #options: UpgradeOptions;
  readonly req: IncomingMessage;
  readonly #socket: Socket;
  readonly #onClose: () => void;
  /** A handshake has no body. */
  readonly mostBodyBytes = 0;
  readonly settings: UpgradeSettings;
  readonly record: RequestRecord;
  readonly watch: Watch;
  readonly #cors: CorsFields;
  readonly #subprotocols: Subprotocols;
  /** Writes what is answered in place of a 101. */
  readonly #res: ServerResponse;
  readonly #early: EarlyBytes;
  readonly #spending: Spending;
  /** What is asked of the upstream, once the use may be spent. */
  #fields: RequestFields | null = null;
  #holdsConnection = false;
  #request: ClientRequest | null = null;
  /** Once its connection is joined with the upstream's. */
  #joined: Joined | null = null;
  #isClosed = false;

  constructor(options: UpgradeOptions, req: IncomingMessage, socket: Socket, watches: Watches, onClose: () => void) {
    this.#options = options;
    this.req = req;
    this.#socket = socket;
    this.#onClose = onClose;
    this.settings = options.live.current;
    this.#cors = corsFields(this.settings, req);
    this.#subprotocols = subprotocolsOf(req.headers['sec-websocket-protocol']);
    this.record = new RequestRecord(options, req);
    this.record.realtime = new RealtimeReader(req.url ?? '');
    this.watch = new Watch(watches);
    this.#early = new EarlyBytes(options.bodies, (refusal) => {
      this.refuse(refusal);
    });
    this.#spending = new Spending(this, options.admission, options.connections);
    this.#res = this.#response();
    socket.on('error', (error) => {
      this.record.cause ??= error;
      this.record.outcome ??= 'client_closed';
    });
    socket.on('end', () => {
      if (this.#isClosed) return;
      if (this.#joined) this.#joined.awaitUpstreamsEnd();
      else if (!this.isOver()) this.destroy('client_closed');
    });
    socket.on('close', () => {
      this.#end();
      this.#onClose();
    });
  }

  get clock(): Clock {
    return this.#options.clock;
  }

  #response(): ServerResponse {
    const { req } = this;
    const socket = this.#socket;
    const res = new ServerResponse(req);
    res.shouldKeepAlive = false;
    res.assignSocket(socket);
    // Node has let go of this connection: nobody else says so.
    socket.on('drain', () => res.emit('drain'));
    res.on('finish', () => {
      this.record.answered();
      this.#end();
      endGently(socket, this.clock);
    });
    return res;
  }

  // ---- its way: admission, a use, the upstream

  /** @param early what the client sent behind its handshake. */
  run(early: Buffer): void {
    this.#socket.on('data', this.#keepEarly);
    this.#keepEarly(early);
    void admit(this, this.#options);
  }

  readonly #keepEarly = (piece: Buffer) => {
    if (this.record.status === null) this.#early.add(piece);
  };

  identified(): boolean {
    return !this.isOver();
  }

  presented({ authorization }: RequestFields): Presented | null {
    const secret = authorization === undefined ? this.#subprotocols.credential : bearerOf(authorization);
    return secret === null ? null : { secret, digest: digestOf(secret) };
  }

  admitted(pass: Pass, fields: RequestFields): void {
    this.#fields = fields;
    void this.#spending.begin(pass);
  }

  forward(): void {
    this.#holdsConnection = true;
    const { pass } = this.record;
    if (!pass || !this.#fields) return;
    this.record.forwardedAtMs = this.clock.monotonic();
    this.watch.expect(this.settings.upstreamConnectTimeoutMs, () => {
      this.fail(new Refusal('upstream_unreachable', 'upstream unreachable'));
    });
    try {
      const headers = handshakeForUpstream(this.#fields, this.req, {
        upstreamKey: pass.upstreamKey,
        requestId: this.record.requestId,
        loopMark: this.#options.loopMark,
        offered: this.#subprotocols.offered,
      });
      this.#request = this.#options.forward({ target: this.req.url ?? '/', headers, socket: this.#socket }, this);
    } catch (error) {
      throw new Refusal('malformed_request', 'a header field or the target cannot be forwarded', { cause: error });
    }
  }

  // ---- the upstream's answer

  connected(): void {
    if (!this.isOver()) this.watch.expect(this.settings.requestTimeoutMs, this.#onSilence);
  }

  accepted(answer: IncomingMessage): OutgoingHttpHeaders {
    const socket = this.#socket;
    const headers = handshakeForClient(this.#clientHeaders(answer));
    this.record.status = 101;
    this.record.isStreamed = true;
    this.#res.detachSocket(socket);
    socket.off('data', this.#keepEarly).pause();
    // From here on the client's bytes are the upstream's, those first that came early.
    this.#early.giveBackTo(socket);
    socket.setDefaultEncoding('latin1'); // Header bytes stay what they are.
    return headers;
  }

  joined(upstream: Socket): void {
    this.#joined = new Joined(this, this.#socket, upstream);
    this.#joined.begin();
  }

  answered(answer: IncomingMessage): void {
    const res = this.#res;
    const { statusCode: status = 0 } = answer;
    if (status === 401) {
      // To our key. The upstream's text can quote the key, so not a byte of it goes on.
      this.refuse(new Refusal('upstream_key_rejected', "upstream rejected the project's key"));
      return;
    }
    this.#early.forget();
    try {
      res.writeHead(status, this.#clientHeaders(answer)).flushHeaders();
    } catch (error) {
      this.refuse(malformedAnswer(error));
      return;
    }
    this.record.status = status;
    this.watch.expect(this.settings.requestTimeoutMs, this.#onSilence);
    answer.on('data', (piece: Buffer) => {
      this.record.bytesOut += piece.length;
      this.watch.touch();
      if (res.write(piece)) return;
      answer.pause();
      res.once('drain', () => {
        this.watch.touch();
        answer.resume();
      });
    });
    answer.on('end', () => res.end());
    answer.on('error', (error) => {
      this.fail(malformedAnswer(error));
    });
  }

  /** @returns names and values in turn. @throws when the answer cannot be passed on. */
  #clientHeaders(answer: IncomingMessage): string[] {
    const { record } = this;
    const { pass } = record;
    if (!pass) throw new Error('an answer without a pass');
    const raw = answer.rawHeaders.map((text) => Buffer.from(text, 'latin1'));
    const nowMs = this.clock.monotonic();
    const { list } = headersForClient({ record, pass, status: answer.statusCode ?? 0, cors: this.#cors, nowMs }, raw);
    record.answeredAtMs = nowMs;
    return list;
  }

  fail(refusal: Refusal): void {
    if (this.isOver()) return;
    if (this.record.status === null) {
      this.refuse(refusal);
    } else {
      this.record.cause ??= refusal.cause;
      this.destroy(refusal.kind === 'upstream_timeout' ? 'timeout' : 'truncated');
    }
  }

  readonly #onSilence = () => {
    // If it is the client that takes nothing, nobody is there to be told.
    if (this.#res.writableNeedDrain) this.destroy('client_closed');
    else this.fail(new Refusal('upstream_timeout', 'upstream timed out'));
  };

  // ---- its ends

  isOver(): boolean {
    return this.record.outcome !== null;
  }

  isClosed(): boolean {
    return this.#isClosed;
  }

  refuse(error: unknown): void {
    if (this.isOver() || error instanceof ClientGone) return;
    const refusal = asRefusal(error);
    this.record.refused(refusal);
    this.#early.forget();
    this.watch.end();
    this.#request?.destroy();
    const headers = { ...REFUSAL_HEADERS, ...this.#cors };
    sendProblem(this.#res, refusal, this.record.requestId, headers, wordingFor(refusal, this.req, this.settings));
    this.#options.untaken.watch(this.#res);
  }

  cut(refusal: Refusal): void {
    this.#cutShort('revoked', refusal);
  }

  /** The daemon stops and cannot wait any longer, not even for a client to close. */
  drain(): void {
    this.#cutShort('drained', unavailable());
    this.#socket.end(() => this.#socket.destroy());
  }

  #cutShort(outcome: Outcome, refusal: Refusal): void {
    if (this.isOver()) return;
    if (this.record.status === null) this.refuse(refusal);
    else this.destroy(outcome, refusal);
    this.record.outcome = outcome;
  }

  destroy(outcome: Outcome, why?: Refusal): void {
    this.record.outcome ??= outcome;
    this.#request?.destroy();
    if (why && this.#joined?.isBetweenFrames) {
      this.#end();
      this.#joined.sayWhy(why);
    } else {
      this.#joined?.end();
      this.#socket.destroy();
    }
  }

  /** The answer went out whole, or the connection is gone. */
  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // After a 101 it does not matter which side ends it.
    this.record.outcome ??= this.record.status === 101 ? 'ok' : 'client_closed';
    this.#early.forget();
    this.watch.end();
    this.#request?.destroy();
    this.#joined?.end();
    this.#spending.end();
    if (this.#holdsConnection) this.#options.connections.release();
    this.record.end();
  }
}
