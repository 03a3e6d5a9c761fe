import { type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Live, Reloadable } from '../../../config/settings.js';
import type { Pass } from '../../core/account.js';
import type { Outcome } from '../../core/events.js';
import type { Asked } from '../../core/policy/policy.js';
import type { MemoryLimit } from '../../core/memory-limit.js';
import type { Clock } from '../../core/ports.js';
import { Refusal, unavailable } from '../../core/refusal.js';
import { digestOf } from '../../core/token.js';
import { askedOf } from './asked.js';
import { checkBoundable } from './budgeted.js';
import { admit, type AdmissionRequest, type AdmitOptions, type AdmitSettings, checkNotEnded } from './admit.js';
import type { Slot } from './upstream-connection.js';
import { headersForClient, REFUSAL_HEADERS } from './client-response.js';
import { ClientGone, endAndLinger } from '../connection-ends.js';
import { type CorsFields, corsFields, type CorsSettings } from '../cors.js';
import { credentialOf, type PresentedToken, type Subprotocols, subprotocolsOf } from '../client-identity.js';
import { EarlyBytes } from './early-bytes.js';
import type { RequestFields } from '../request-head.js';
import { handshakeForClient, handshakeForUpstream } from './handshake.js';
import { malformedResponse, type UpgradeReceiver } from './http-proxy.js';
import { WebSocketTunnel, type TunnelOwner } from './websocket-tunnel.js';
import { isOfResponses, WebSocketUses } from './websocket-uses.js';
import { asRefusal, sendProblem, statusFor } from '../problems.js';
import { RequestRecord } from './request-record.js';
import { IdleTimer, type IdleTimers } from './timeouts.js';
import type { Upstream, Upstreams } from './upstreams.js';
import { wordingFor, type WordingSettings } from '../wording.js';

type UpgradeSettings = AdmitSettings &
  CorsSettings &
  WordingSettings &
  Pick<Reloadable, 'requestTimeoutMs' | 'upstreamConnectTimeoutMs' | 'websocketIdleTimeoutMs' | 'countReads'>;

export interface UpgradeOptions extends AdmitOptions {
  /** Limit for a message of a client that may ask for a response. */
  maxRequestBytes: number;
  /** WebSockets and plain requests share the limit of connections to an origin. */
  upstreams: Pick<Upstreams, 'of'>;
  /** The current settings: SIGHUP may replace them. A connection keeps those that it began with. */
  live: Live<keyof UpgradeSettings>;
}

/** One WebSocket connection, from its handshake to its end. This class defines the order of the steps and the ways in which it ends. */
export class Upgrade implements AdmissionRequest, TunnelOwner, UpgradeReceiver {
  readonly #options: UpgradeOptions;
  readonly req: IncomingMessage;
  readonly #socket: Socket;
  readonly #onClose: () => void;
  /** A handshake has no body. */
  readonly maxBodyBytes = 0;
  readonly settings: UpgradeSettings;
  readonly record: RequestRecord;
  readonly uses: WebSocketUses;
  readonly idleTimer: IdleTimer;
  readonly #cors: CorsFields;
  readonly #subprotocols: Subprotocols;
  /** Writes the response if it is not a 101. */
  readonly #res: ServerResponse;
  readonly #earlyBytes: EarlyBytes;
  /** Its place among the connections to the upstream, until it ends. */
  #slot: Slot | null = null;
  #asked: Asked | null = null;
  #upstreamRequest: ClientRequest | null = null;
  /** Set once the connection is piped to the upstream's. */
  #tunnel: WebSocketTunnel | null = null;
  #isClosed = false;

  constructor(
    options: UpgradeOptions,
    req: IncomingMessage,
    socket: Socket,
    idleTimers: IdleTimers,
    onClose: () => void,
  ) {
    this.#options = options;
    this.req = req;
    this.#socket = socket;
    this.#onClose = onClose;
    this.settings = options.live.current;
    this.#cors = corsFields(this.settings, req);
    this.#subprotocols = subprotocolsOf(req.headers['sec-websocket-protocol']);
    this.record = new RequestRecord(options, req);
    this.uses = new WebSocketUses(
      { ...options, statusFor: (refusal) => statusFor(refusal, wordingFor(refusal, req, this.settings)) },
      this.record,
      req.url ?? '',
    );
    this.record.connection = this.uses;
    this.idleTimer = new IdleTimer(idleTimers);
    this.#earlyBytes = new EarlyBytes(options.memory, (refusal) => {
      this.refuse(refusal);
    });
    this.#res = this.#response();
    socket.on('error', (error) => {
      this.record.cause ??= error;
      this.record.outcome ??= 'client_closed';
    });
    socket.on('end', () => {
      if (this.#isClosed) return;
      if (this.#tunnel) this.#tunnel.clientEnded();
      else if (!this.hasEnded()) this.destroy('client_closed');
    });
    socket.on('close', () => {
      this.#end();
      this.#onClose();
    });
  }

  get memory(): MemoryLimit {
    return this.#options.memory;
  }

  get maxMessageBytes(): number {
    return this.#options.maxRequestBytes;
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
    // After an upgrade Node no longer forwards this event.
    socket.on('drain', () => res.emit('drain'));
    res.on('finish', () => {
      this.record.responseCompleted();
      this.#end();
      endAndLinger(socket, this.clock);
    });
    return res;
  }

  // ---- steps: admission, a use, the upstream

  /** @param early bytes that the client sent after its handshake. */
  run(early: Buffer): void {
    this.#socket.on('data', this.#bufferEarlyBytes);
    this.#bufferEarlyBytes(early);
    void admit(this, this.#options);
  }

  readonly #bufferEarlyBytes = (chunk: Buffer) => {
    if (this.record.status === null) this.#earlyBytes.add(chunk);
  };

  onIdentified(): boolean {
    return !this.hasEnded();
  }

  get asked(): Asked {
    return (this.#asked ??= askedOf(this.req, true));
  }

  readsBody(): boolean {
    return false;
  }

  presentedToken({ authorization, otherCredentials }: RequestFields): PresentedToken | null {
    const { credential } = this.#subprotocols;
    const others = credential === null ? otherCredentials : [...(otherCredentials ?? []), credential];
    const secret = credentialOf(authorization, others);
    return secret === null ? null : { secret, digest: digestOf(secret) };
  }

  onAdmitted(pass: Pass, fields: RequestFields): void {
    void this.#forward(pass, fields);
  }

  async #forward(pass: Pass, fields: RequestFields): Promise<void> {
    const { admission, upstreams } = this.#options;
    const isUse = !isOfResponses(this.req.url ?? '');
    try {
      const upstream = upstreams.of(pass.upstreamBaseUrl);
      const slot = (this.#slot = upstream.forwarder.reserve());
      if (slot.granted) await slot.granted;
      checkNotEnded(this, pass);
      if (pass.budgets) checkBoundable(pass.budgets);
      const confirming = isUse ? admission.draw(pass, false, false, true, this.uses.spending(0)) : admission.hold(pass);
      if (confirming) await confirming;
      checkNotEnded(this, pass);
      this.#send(upstream, pass, fields); // In the same turn as these checks, so that nothing can happen in between.
    } catch (error) {
      this.#slot?.release();
      this.refuse(error);
    }
  }

  #send(upstream: Upstream, pass: Pass, fields: RequestFields): void {
    this.record.forwardedAtMs = this.clock.monotonic();
    this.idleTimer.start(this.settings.upstreamConnectTimeoutMs, () => {
      this.fail(new Refusal('upstream_unreachable', 'upstream unreachable'));
    });
    try {
      const headers = handshakeForUpstream(fields, this.req, {
        upstreamKey: pass.upstreamKey,
        upstreamAuth: pass.upstreamAuth,
        requestId: this.record.requestId,
        loopMark: this.#options.loopMark,
        offered: this.#subprotocols.offered,
      });
      const target = upstream.pathOf(this.req.url ?? '/');
      this.#upstreamRequest = upstream.forwardUpgrade({ target, headers, socket: this.#socket }, this);
    } catch (error) {
      throw new Refusal('malformed_request', 'the URL or a header contains characters that cannot be forwarded', {
        cause: error,
      });
    }
  }

  // ---- the upstream's response

  onConnected(): void {
    if (!this.hasEnded()) this.idleTimer.start(this.settings.requestTimeoutMs, this.#onTimeout);
  }

  onUpgrade(response: IncomingMessage): OutgoingHttpHeaders {
    // None was offered, and with one the frames could not be read.
    if (response.headers['sec-websocket-extensions'] !== undefined) throw new Error('101 with an extension');
    const socket = this.#socket;
    const headers = handshakeForClient(this.#clientHeaders(response));
    this.record.status = 101;
    this.record.isStreamed = true;
    this.#res.detachSocket(socket);
    socket.off('data', this.#bufferEarlyBytes).pause();
    // From here on the client's bytes go to the upstream, beginning with the early ones.
    this.#earlyBytes.returnTo(socket);
    socket.setDefaultEncoding('latin1'); // So that header bytes are written unchanged.
    return headers;
  }

  onTunnel(upstream: Socket): void {
    this.#tunnel = new WebSocketTunnel(this, this.#socket, upstream);
    this.#tunnel.begin();
  }

  onResponse(response: IncomingMessage): void {
    const res = this.#res;
    const { statusCode: status = 0 } = response;
    if (status === 401) {
      // The project's key was rejected. The upstream's text may quote the key, so none of it is forwarded.
      this.refuse(new Refusal('upstream_key_rejected', "upstream rejected the project's key"));
      return;
    }
    this.#earlyBytes.discard();
    try {
      res.writeHead(status, this.#clientHeaders(response)).flushHeaders();
    } catch (error) {
      this.refuse(malformedResponse(error));
      return;
    }
    this.record.status = status;
    this.idleTimer.start(this.settings.requestTimeoutMs, this.#onTimeout);
    response.on('data', (chunk: Buffer) => {
      this.record.bytesOut += chunk.length;
      this.idleTimer.touch();
      if (res.write(chunk)) return;
      response.pause();
      res.once('drain', () => {
        this.idleTimer.touch();
        response.resume();
      });
    });
    response.on('end', () => res.end());
    response.on('error', (error) => {
      this.fail(malformedResponse(error));
    });
  }

  /** @returns names and values in turn. @throws if the response cannot be forwarded. */
  #clientHeaders(response: IncomingMessage): string[] {
    const { record } = this;
    const { pass } = record;
    if (!pass) throw new Error('a response without a pass');
    const raw = response.rawHeaders.map((text) => Buffer.from(text, 'latin1'));
    const nowMs = this.clock.monotonic();
    const { list } = headersForClient({ record, pass, status: response.statusCode ?? 0, cors: this.#cors, nowMs }, raw);
    record.respondedAtMs = nowMs;
    return list;
  }

  fail(refusal: Refusal): void {
    if (this.hasEnded()) return;
    if (this.record.status === null) {
      this.refuse(refusal);
    } else {
      this.record.cause ??= refusal.cause;
      this.destroy(refusal.kind === 'upstream_timeout' ? 'timeout' : 'truncated');
    }
  }

  readonly #onTimeout = () => {
    // If the client is the one that stalls (it does not read), an error response would not reach it either.
    if (this.#res.writableNeedDrain) this.destroy('client_closed');
    else this.fail(new Refusal('upstream_timeout', 'upstream timed out'));
  };

  // ---- ways to end

  hasEnded(): boolean {
    return this.record.outcome !== null;
  }

  isClosed(): boolean {
    return this.#isClosed;
  }

  refuse(error: unknown): void {
    if (this.hasEnded() || error instanceof ClientGone) return;
    const refusal = asRefusal(error);
    this.record.refused(refusal);
    this.#earlyBytes.discard();
    this.idleTimer.end();
    this.#upstreamRequest?.destroy();
    const headers = { ...REFUSAL_HEADERS, ...this.#cors };
    const wording = wordingFor(refusal, this.req, this.settings);
    this.record.status = statusFor(refusal, wording);
    sendProblem(this.#res, refusal, this.record.requestId, headers, wording);
    this.#options.unreadResponses.watch(this.#res);
  }

  cut(refusal: Refusal): void {
    this.#terminate('revoked', refusal);
  }

  /** Called when the daemon stops and cannot wait any longer, not even for the client to close. */
  drain(): void {
    this.#terminate('drained', unavailable());
    this.#socket.end(() => this.#socket.destroy());
  }

  #terminate(outcome: Outcome, refusal: Refusal): void {
    if (this.hasEnded()) return;
    if (this.record.status === null) this.refuse(refusal);
    else this.destroy(outcome, refusal);
    this.record.outcome = outcome;
  }

  /** The refusal is recorded already. */
  destroyFor(refusal: Refusal): void {
    this.destroy('ok', refusal, true);
  }

  destroy(outcome: Outcome, why?: Refusal, isForMessage = false): void {
    this.record.outcome ??= outcome;
    this.#upstreamRequest?.destroy();
    if (why && this.#tunnel?.isBetweenFrames) {
      this.#end();
      this.#tunnel.sendReason(why, isForMessage);
    } else {
      this.#tunnel?.end();
      this.#socket.destroy();
    }
  }

  /** The complete response was sent, or the connection is closed. */
  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // After a 101 it is `ok` whichever side closes the connection.
    this.record.outcome ??= this.record.status === 101 ? 'ok' : 'client_closed';
    this.#earlyBytes.discard();
    this.idleTimer.end();
    this.#upstreamRequest?.destroy();
    this.#tunnel?.end();
    this.uses.end(this.record.outcome);
    this.#slot?.release();
    this.record.end();
  }
}
